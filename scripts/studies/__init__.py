"""Commands of the designed studies."""
