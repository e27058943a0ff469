"""The forward pass over texts: encoding, the model that is asked, statistics of its vocabulary."""
