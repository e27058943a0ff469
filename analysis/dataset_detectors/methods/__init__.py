"""One dataset-level detector a file, found by its place as the detectors of texts are."""
