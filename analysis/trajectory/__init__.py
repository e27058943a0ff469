"""Detection along training: AUC at every checkpoint, and how it fades."""
