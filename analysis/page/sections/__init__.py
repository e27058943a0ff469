"""Sections of the page that say what the scores say: a question, and what answers it."""
