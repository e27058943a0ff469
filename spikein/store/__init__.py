"""The content-addressed store: artifacts that are complete, verified, and built once."""
