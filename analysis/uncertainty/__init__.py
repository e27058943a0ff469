"""How sure the numbers of a column are: intervals of its cells and of differences."""
