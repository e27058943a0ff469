"""SimNPO (Fan et al. 2024, equation 5): NPO without a reference, normalised by length.

    loss = -(2 / beta) log sigmoid(-beta / |text| log p(text) - gamma)

With `retain_weight`, plus the weighted usual loss on retain texts. Public implementations disagree
twice. On the log-probability: the authors divide by the tokens (`reduction: mean`), as the paper
says; copies of NPO's code keep the sum. On the margin: the paper subtracts gamma after scaling;
the authors' code subtracts its `delta` before, so that gamma here is beta times delta. Passes:
forget and retain in one; no reference.
"""

from inject.settings import PositiveFloat
from train.unlearn.method import (
    Batch,
    Reduction,
    Tensor,
    TwoTermSettings,
    UnlearningMethod,
    Weight,
    retained_if_weighted,
)


class SimNpoSettings(TwoTermSettings):
    """Hyper-parameters of SimNPO."""

    beta: PositiveFloat
    """Inverse temperature."""
    gamma: Weight
    """Margin by which a text has to be unlikely, in the sigmoid's argument."""
    reduction: Reduction
    """Whether a text's log-probability is the `mean` over its tokens or their `sum`."""


def loss(batch: Batch) -> Tensor:
    """Return the loss of each forget text, with its retain text, [texts]."""
    import torch.nn.functional as F

    settings: SimNpoSettings = batch.settings
    scaled = batch.forget.reduced(batch.forget.log_probability, settings.reduction)
    argument = -settings.beta * scaled - settings.gamma
    lost = settings.forget_weight * -2.0 / settings.beta * F.logsigmoid(argument)
    return batch.with_retain(lost)


METHOD = UnlearningMethod(
    name="simnpo", loss=loss, settings=SimNpoSettings, roles=retained_if_weighted
)
