"""The one training loop, its order, its record of each step, and how it resumes."""
