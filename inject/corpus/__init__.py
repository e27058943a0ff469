"""The clean corpus: where its text comes from, how it becomes tokens, and how they are read."""
