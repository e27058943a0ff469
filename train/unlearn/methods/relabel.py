"""Relabelling by alternative tokens (Eldan and Russinovich 2023, "Who's Harry Potter?").

A reinforced model is trained on the forget set. If it prefers a token more than the original does,
the set teaches that token, which is then suppressed (equation 1):

    v_generic = v_original - alpha * relu(v_reinforced - v_original)

The original is then fine-tuned on the forget texts with the label argmax(v_generic) at each
position, seen after the text's own tokens. This follows the paper, except for its second half: it
replaces the names of a dictionary (written by a language model for one series of books) by generic
ones and keeps a text's labels consistent after a name was replaced. Passes: forget, in both stages;
once, forget under the original and the reinforced model.
"""

from collections.abc import Callable

from inject.settings import PositiveFloat, PositiveInt
from train.unlearn.method import Batch, MethodSettings, Tensor, UnlearningMethod


class RelabelSettings(MethodSettings):
    """Hyper-parameters of relabelling."""

    alpha: PositiveFloat
    """How strongly the tokens learnt by the reinforced model are suppressed."""
    reinforced_lr: PositiveFloat
    """Peak learning rate of the reinforced model."""
    reinforced_epochs: PositiveInt
    """Passes of the reinforced model over the forget set."""


def loss(batch: Batch) -> Tensor:
    """Return the usual loss of each forget text, on its labels, [texts]."""
    return batch.forget.loss


def generic_labels(
    original: Callable[[Tensor], Tensor],
    reinforced: Callable[[Tensor], Tensor],
    ids: Tensor,
    settings: RelabelSettings,
) -> Tensor:
    """Return the generic label of each position, [texts, length]; the first has none.

    Args:
        original: from ids to logits.
        reinforced: the same, of the reinforced model.
        ids: [texts, length].
        settings: with `alpha`.
    """
    import torch

    before = original(ids).float()
    generic = before - settings.alpha * (reinforced(ids).float() - before).relu()
    labels = torch.full_like(ids, -100)
    labels[:, 1:] = generic[:, :-1].argmax(2)
    return labels


def _reinforced_settings(settings: RelabelSettings) -> MethodSettings:
    own = {name: getattr(settings, name) for name in MethodSettings.model_fields}
    lr, epochs = settings.reinforced_lr, settings.reinforced_epochs
    return MethodSettings(**{**own, "lr": lr, "epochs": epochs})


METHOD = UnlearningMethod(
    name="relabel",
    loss=loss,
    settings=RelabelSettings,
    first=_reinforced_settings,
    labels=generic_labels,
)
