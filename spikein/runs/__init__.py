"""Run folders: their contents, and operations on finished runs."""
