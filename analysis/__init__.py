"""Analysis of the scores: metrics with intervals, figures, and the report."""
