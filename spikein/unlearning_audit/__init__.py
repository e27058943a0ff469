"""`spikein audit-unlearning`: reads texts, asks models, writes the audit's folder."""
