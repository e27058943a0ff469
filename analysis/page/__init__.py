"""The page of a run: its content, assembled from artifacts, and one self-contained HTML file."""
