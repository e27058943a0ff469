"""Rows of a user's file or list to score: read, checked, and turned into examples of a graph."""
