"""How sure the numbers of a column are: intervals of its cells, of differences, and bands."""
