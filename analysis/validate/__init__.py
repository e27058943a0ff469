"""A new detector judged against ground truth: its rank among all stored ones, and checks of it."""
