"""Gradient difference (Liu et al. 2022, "Continual learning and private unlearning"): forget by
ascent, and train on the texts to keep.

    loss = forget_weight * mean log p(forget) - retain_weight * mean log p(retain)

Passes: forget and retain, in one.
"""

from train.unlearn.method import Batch, Tensor, TwoTermSettings, UnlearningMethod


def loss(batch: Batch) -> Tensor:
    """Return the loss of each forget text with its retain text, [texts]."""
    settings: TwoTermSettings = batch.settings
    retain_term = settings.retain_weight * batch.kept().loss
    return retain_term - settings.forget_weight * batch.forget.loss


METHOD = UnlearningMethod(
    name="gradient_difference",
    loss=loss,
    settings=TwoTermSettings,
    roles=lambda settings: ("forget", "retain"),
)
