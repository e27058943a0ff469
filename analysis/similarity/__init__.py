"""How alike two texts are: by shared words and characters, by embeddings, by a judge."""
