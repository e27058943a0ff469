"""Stored scores."""
