"""The text of a copy: the whole example, or a variant of it."""
