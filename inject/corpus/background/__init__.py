"""Sources of clean text by `kind`, and their weighted mixture.

A source is a frozen settings object with `documents()`, `identity()` (its content, neither its
path nor its weight) and `label()`. `finite` ones are put in keyed order by the mixture, the
others keep their own.
"""
