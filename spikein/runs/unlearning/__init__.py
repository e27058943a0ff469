"""What a run's folder and its page hold of unlearned models."""
