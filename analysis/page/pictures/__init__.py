"""Pictures that are no section of their own: scores, training, sweeps, SURP, dose-response."""
