"""The experiment: the schema of its file, its reading, sweep and checks."""
