"""Steps in which models write: continuations of texts, and guesses of masked words."""
