"""Rows of a user scored by a given model: the graph of `spikein detect` and `score_texts`."""
