"""Scores of a user's rows under any model: the graph of `spikein detect` and `score_texts`."""
