"""Goldens: what two versions of the code compute on this machine, compared to the last bit."""
