"""An OpenAI-compatible server of texts: one client for paraphrases and detectors."""
