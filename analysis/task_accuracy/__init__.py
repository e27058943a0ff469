"""What contamination adds to the accuracy on a benchmark."""
