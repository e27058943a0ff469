"""Texts that a model writes: continuations, and guesses of masked words."""
