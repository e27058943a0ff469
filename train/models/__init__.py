"""The models: shapes and families, loading what exists, adapters, attention, checks of weights."""
