"""What a benchmark's accuracy would have been without contamination."""
