"""The audit of an unlearned model: the ratio rule, what is remembered, and how far to trust it."""
