"""The contaminated stream: composed, ordered, audited, and read back as exposures."""
