"""Unlearning: methods, their data, and the run that trains one through the one loop."""
