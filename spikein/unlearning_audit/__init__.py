"""The audit of an unlearned model by its original, on any texts: `spikein audit-unlearning`."""
