"""AUCs as coloured cells: detectors by arms, and the grid of SURP."""
