"""How a file of rows meets each need of a detector: one file a kind of need."""
