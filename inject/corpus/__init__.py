"""The clean corpus: the sources of its text, tokenisation, and reading of tokens."""
