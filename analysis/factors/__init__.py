"""What each factor does to detectability: doses, contrasts, detectors, seeds."""
