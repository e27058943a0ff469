"""Negative preference optimisation (Zhang et al. 2024, equation 3): DPO with only the losing half.

    loss = -(2 / beta) log sigmoid(-beta (log p(text) - log p_original(text)))

For beta to 0 it becomes gradient ascent; for any other it flattens once the text has become
unlikely, so the model is ruined more slowly. With `retain_weight`, NPO-RT: plus the weighted usual
loss on retain texts. Public implementations disagree on log p(text): the authors' code sums over
tokens, others use the mean; `reduction` selects one. Passes: forget (and retain, in the same); the
original's log-probabilities are computed once.
"""

from inject.settings import PositiveFloat
from train.unlearn.method import (
    Batch,
    Reduction,
    Tensor,
    Texts,
    TwoTermSettings,
    UnlearningMethod,
    retained_if_weighted,
)


class NpoSettings(TwoTermSettings):
    """Hyper-parameters of NPO."""

    beta: PositiveFloat
    """Inverse temperature: the smaller, the nearer to gradient ascent."""
    reduction: Reduction
    """Whether a text's log-probability is the `sum` over its tokens or their `mean`."""


def preference_loss(forget: Texts, *, beta: float, reduction: Reduction) -> Tensor:
    """Return NPO's loss of each forget text, [texts]."""
    import torch.nn.functional as F

    log_ratio = forget.log_probability - forget.known_original()
    return -2.0 / beta * F.logsigmoid(-beta * forget.reduced(log_ratio, reduction))


def loss(batch: Batch) -> Tensor:
    """Return the loss of each forget text, with its retain text, [texts]."""
    settings: NpoSettings = batch.settings
    lost = preference_loss(batch.forget, beta=settings.beta, reduction=settings.reduction)
    return batch.with_retain(settings.forget_weight * lost)


METHOD = UnlearningMethod(
    name="npo",
    loss=loss,
    settings=NpoSettings,
    roles=retained_if_weighted,
    reference=lambda settings: True,
)
