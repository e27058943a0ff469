"""Preference optimisation for 'I don't know' (DPO, Rafailov et al. 2023, equation 7, used to forget
as in Maini et al. 2024, section 4).

    loss = -log sigmoid(beta (log p(idk) / p_original(idk) - log p(true) / p_original(true)))

`idk` is an answer such as "I don't know.", drawn for each text, in place of the true one; both
carry their loss behind the prompt alone (`train.unlearn.alternatives`). With `retain_weight`, plus
the weighted usual loss on retain texts. Passes: forget, idk (and retain) in one; the original's
log-probabilities are computed once.
"""

from typing import TYPE_CHECKING

from inject.settings import PositiveFloat, PositiveInt
from train.unlearn.method import UnlearningMethod
from train.unlearn.settings import MethodSettings, Reduction, Weight

if TYPE_CHECKING:
    import torch

    from train.unlearn.batch import Role, UnlearningBatch


class DpoSettings(MethodSettings):
    """Hyper-parameters of DPO."""

    beta: PositiveFloat = 0.1
    """Inverse temperature: how far the model may go from the original."""
    reduction: Reduction = "sum"
    """Whether an answer's log-probability is the `sum` over its tokens or their `mean`."""
    prompt_tokens: PositiveInt = 32
    """Tokens of the prompt at most, in texts where no answer is recorded."""
    retain_weight: Weight = 0.0
    """Weight of the usual loss on retain texts; 0 looks at none."""


def loss(batch: "UnlearningBatch") -> "torch.Tensor":
    """Return the loss of each forget text and its alternative, [texts]."""
    import torch.nn.functional as F

    settings: DpoSettings = batch.settings
    preferred, rejected = batch.alternative, batch.forget
    if preferred is None:
        raise ValueError("the method has no alternative answers")
    gained, lost = (
        texts.reduced(texts.log_probability - texts.known_original(), settings.reduction)
        for texts in (preferred, rejected)
    )
    found = -F.logsigmoid(settings.beta * (gained - lost))
    if batch.retain is not None:
        found = found + settings.retain_weight * batch.retain.loss
    return found


def _roles(settings: DpoSettings) -> tuple["Role", ...]:
    kept: tuple[Role, ...] = ("retain",) if settings.retain_weight > 0 else ()
    return ("forget", "alternative", *kept)


METHOD = UnlearningMethod(
    name="dpo",
    loss=loss,
    settings=DpoSettings,
    roles=_roles,
    reference=lambda settings: True,
    prompt_tokens=lambda settings: settings.prompt_tokens,
)
