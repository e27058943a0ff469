"""Tests of `spikein.api`."""
