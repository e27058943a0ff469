"""Designed studies: claims, contrasts and laws, over seeds."""
