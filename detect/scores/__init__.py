"""Scores as they are stored."""
