"""Rows of a file or list that a user has scored: read, checked, and made examples of a graph."""
