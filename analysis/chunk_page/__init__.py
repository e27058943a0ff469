"""The page of an audit by chunks: truth and continuations side by side, sorted by suspicion."""
