"""The forward pass over texts: encoding, the target model, statistics of its vocabulary."""
