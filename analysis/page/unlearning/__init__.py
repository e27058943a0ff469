"""The page's sections on unlearned models: verdicts, measures a method, audits, and the methods."""
