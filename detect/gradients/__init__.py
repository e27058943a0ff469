"""Gradients of a text's loss: their norms, which are all that is stored of them."""
