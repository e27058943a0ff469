"""Plain training on forgotten texts: the method of the loop that brings them back."""
