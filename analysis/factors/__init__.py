"""What each factor does to detectability: doses, contrasts, regression, detectors, seeds."""
