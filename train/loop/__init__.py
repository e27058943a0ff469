"""The training loop: its order, its record of each step, and its resumption."""
