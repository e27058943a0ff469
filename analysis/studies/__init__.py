"""Designed studies: what they claim before they run, and what became of it."""
