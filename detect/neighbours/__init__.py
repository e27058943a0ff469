"""Neighbours of a text: the same text with one token in another's place."""
