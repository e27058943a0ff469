"""Unlearning as nodes of the graph: unlearned models beside the original and the retrained one."""
