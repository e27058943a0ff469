"""Gradient ascent (Jang et al. 2023, equation 2): the likelihood of the forget set falls.

    loss = mean over the text's tokens of log p(token | before)

It has no lower bound: trained for long, it ruins the model (the reason for NPO). One pass: forget.
"""

from train.unlearn.method import Batch, Tensor, UnlearningMethod


def loss(batch: Batch) -> Tensor:
    """Return the negative of the usual loss of each forget text, [texts]."""
    return -batch.forget.loss


METHOD = UnlearningMethod(name="gradient_ascent", loss=loss)
