"""The way to a value in an experiment file: keys, and numbers of list items."""

KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    """Return a key path as a user writes it: `contaminants.0.members`."""
    return ".".join(str(part) for part in path)
