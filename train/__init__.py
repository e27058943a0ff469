"""Training of models: base and contaminated, from scratch or continued."""
