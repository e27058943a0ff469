"""Detection along training: AUC at every scored checkpoint, and how it fades."""
