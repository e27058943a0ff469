"""The audit of an unlearned model against its original, on any texts: `audit-unlearning`."""
