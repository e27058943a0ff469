"""What a model writes about a text: continuations of it, and guesses of its words."""
