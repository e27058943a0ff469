"""What the scores say: metrics with intervals, figures, and the report."""
