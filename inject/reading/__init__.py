"""Rows of local files: which files, in which format, and that they are read as they were hashed."""
