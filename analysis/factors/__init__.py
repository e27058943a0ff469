"""The effect of each factor on detectability: doses, contrasts, detectors, seeds."""
