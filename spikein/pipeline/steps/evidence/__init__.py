"""How the graph meets each need of a detector: one file a kind of need."""
