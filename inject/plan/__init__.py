"""The plan: the number of copies of each member, and the position of each copy."""
