"""A release: its checks, builds and trials before the upload."""
