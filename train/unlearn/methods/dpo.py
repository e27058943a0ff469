"""Preference optimisation for 'I don't know' (DPO, Rafailov et al. 2023, equation 7, used to forget
as in Maini et al. 2024, section 4).

    loss = -log sigmoid(beta (log p(idk) / p_original(idk) - log p(true) / p_original(true)))

`idk` is an answer such as "I don't know.", drawn for each text, in place of the true one; both
carry their loss only after the prompt (`train.unlearn.texts`). With `retain_weight`, plus the
weighted usual loss on retain texts. open-unlearning multiplies the first term by 2 / beta, as NPO
does, so that a retain term weighs 20 times as much here at beta 0.1: `forget_weight: 20` gives
theirs. Passes: forget, idk (and retain) in one; the original's log-probabilities are computed once.
"""

from typing import TYPE_CHECKING

from inject.settings import PositiveFloat, PositiveInt
from train.unlearn.method import (
    Batch,
    Reduction,
    Tensor,
    TwoTermSettings,
    UnlearningMethod,
    retained_if_weighted,
)

if TYPE_CHECKING:
    from train.unlearn.batch import Role


class DpoSettings(TwoTermSettings):
    """Hyper-parameters of DPO."""

    beta: PositiveFloat
    """Inverse temperature: how far the model may go from the original."""
    reduction: Reduction
    """Whether an answer's log-probability is the `sum` over its tokens or their `mean`."""
    prompt_tokens: PositiveInt
    """Maximum tokens of the prompt, in texts without a recorded answer."""


def loss(batch: Batch) -> Tensor:
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
    preference = F.logsigmoid(settings.beta * (gained - lost))
    return batch.with_retain(-settings.forget_weight * preference)


def _roles(settings: DpoSettings) -> tuple["Role", ...]:
    forget, *retain_roles = retained_if_weighted(settings)
    return (forget, "alternative", *retain_roles)


METHOD = UnlearningMethod(
    name="dpo",
    loss=loss,
    settings=DpoSettings,
    roles=_roles,
    reference=lambda settings: True,
    prompt_tokens=lambda settings: settings.prompt_tokens,
)
