"""Several training processes: which one this is, who hangs, and who is asked to stop."""
