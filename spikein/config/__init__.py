"""What an experiment is: the schema of its file, how the file is read, swept and checked."""
