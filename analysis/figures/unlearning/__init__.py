"""Figures of an unlearning study: forgetting against utility, by copies, relearning, measures."""
