"""Pictures of the page: drawn at the width of a column, and again for a phone."""
