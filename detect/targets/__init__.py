"""Models that write: a local one, and one behind a server."""
