"""What a copy carries: the whole example, or a variant of it."""
