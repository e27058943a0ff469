"""The audit of the background's text: which documents overlap with which examples."""
