"""An OpenAI-compatible server that is asked for texts: one client for paraphrases and detectors."""
