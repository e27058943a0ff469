"""Forgetting while the predictions on retain texts stay unchanged ("KL minimisation" of TOFU,
Maini et al. 2024, section 4; NPO-KL of Zhang et al. 2024).

    loss = forget_weight * forget term
           + retain_weight * mean over tokens of KL(p_original || p) on retain texts

The forget term is gradient ascent's or NPO's. The original scores the retain texts in each step,
one forward pass without gradients; with LoRA it is the same weights without the adapters. Passes:
forget and retain in one, retain under the original.
"""

from typing import Literal

from inject.settings import PositiveFloat
from train.unlearn.method import Batch, Reduction, Tensor, TwoTermSettings, UnlearningMethod
from train.unlearn.methods.npo import preference_loss


class KlSettings(TwoTermSettings):
    """Hyper-parameters of forgetting with a KL term."""

    forget_loss: Literal["gradient_ascent", "npo"]
    """The forget term."""
    beta: PositiveFloat
    """Inverse temperature of the forget term `npo`."""
    reduction: Reduction
    """Of the forget term `npo`: a text's log-probability as `sum` over its tokens or `mean`."""


def loss(batch: Batch) -> Tensor:
    """Return the loss of each forget text with its retain text, [texts]."""
    from train.unlearn.batch import kl_divergence

    settings: KlSettings = batch.settings
    if settings.forget_loss == "npo":
        lost = preference_loss(batch.forget, beta=settings.beta, reduction=settings.reduction)
    else:
        lost = -batch.forget.loss
    retained = batch.kept()
    divergence = kl_divergence(batch.original(retained), retained.known_logits(), retained.mask)
    return (
        settings.forget_weight * lost + settings.retain_weight * divergence.sum(1) / retained.counts
    )


METHOD = UnlearningMethod(
    name="kl",
    loss=loss,
    settings=KlSettings,
    roles=lambda settings: ("forget", "retain"),
    reference=lambda settings: settings.forget_loss == "npo",
    original=lambda settings: True,
)
