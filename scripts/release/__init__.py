"""A release: what is checked, built and tried before somebody uploads it."""
