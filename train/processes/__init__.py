"""Several training processes: the own rank, detection of hangs, and requests to stop."""
