"""Sections of the page that present the scores: each has a question and its answer."""
