"""Datasets that can be spiked: one file each, found by name through `registry`."""
