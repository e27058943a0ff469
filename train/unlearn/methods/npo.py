"""Negative preference optimisation (Zhang et al. 2024, equation 3): DPO with the losing half alone.

    loss = -(2 / beta) log sigmoid(-beta (log p(text) - log p_original(text)))

For beta to 0 it becomes gradient ascent; for any other it flattens once the text has become
unlikely, so the model is ruined more slowly. With `retain_weight`, NPO-RT: plus the weighted usual
loss on retain texts. Public implementations disagree on log p(text): the authors' sums over tokens,
others take the mean a token; `reduction` says which. Passes: forget (and retain, in the same); the
original's log-probabilities are computed once.
"""

from typing import TYPE_CHECKING

from inject.settings import PositiveFloat
from train.unlearn.method import Method
from train.unlearn.settings import MethodSettings, Reduction, Weight

if TYPE_CHECKING:
    import torch

    from train.unlearn.batch import Batch, Role


class NpoSettings(MethodSettings):
    """Hyper-parameters of NPO."""

    beta: PositiveFloat = 0.1
    """Inverse temperature: the smaller, the nearer to gradient ascent."""
    reduction: Reduction = "sum"
    """Whether a text's log-probability is the `sum` over its tokens or their `mean`."""
    retain_weight: Weight = 0.0
    """Weight of the usual loss on retain texts; 0 looks at none."""


def loss(batch: "Batch") -> "torch.Tensor":
    """Return the loss of each forget text, [texts]."""
    import torch.nn.functional as F

    settings: NpoSettings = batch.settings
    forget = batch.forget
    log_ratio = forget.log_probability - forget.known_original()
    scaled = settings.beta * forget.reduced(log_ratio, settings.reduction)
    lost = -2.0 / settings.beta * F.logsigmoid(-scaled)
    if batch.retain is not None:
        lost = lost + settings.retain_weight * batch.retain.loss
    return lost


def _roles(settings: NpoSettings) -> tuple["Role", ...]:
    return ("forget", "retain") if settings.retain_weight > 0 else ("forget",)


METHOD = Method(
    name="npo", loss=loss, settings=NpoSettings, roles=_roles, reference=lambda settings: True
)
