"""The content-addressed store: artifacts that are whole, verified, and built once."""
