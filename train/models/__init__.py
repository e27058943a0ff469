"""Models: shapes and families, loading of existing models, adapters, attention, checks of
weights."""
