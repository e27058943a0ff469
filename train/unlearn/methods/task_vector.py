"""Task arithmetic (Ilharco et al. 2023, section 3): learn the forget set, and subtract the change.

    theta = theta_original - scale * (theta_finetuned - theta_original)

The fine-tuning is the usual loss on the forget texts, through the one loop; log and exposures are
from it. Pass: forget.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from inject.settings import PositiveFloat
from train.unlearn.method import FullOnly, UnlearningMethod

if TYPE_CHECKING:
    import torch

    from train.unlearn.batch import UnlearningBatch


class TaskVectorSettings(FullOnly):
    """Hyper-parameters of the task vector."""

    scale: PositiveFloat
    """Multiple of the change towards the forget set to subtract."""


def loss(batch: "UnlearningBatch") -> "torch.Tensor":
    """Return the usual loss of each forget text, [texts]."""
    return batch.forget.loss


def negated(
    original: Mapping[str, "torch.Tensor"],
    trained: Mapping[str, "torch.Tensor"],
    settings: TaskVectorSettings,
) -> Mapping[str, "torch.Tensor"]:
    """Return the original's weights minus the scaled task vector."""
    return {
        name: weight - settings.scale * (trained[name] - weight)
        if weight.is_floating_point()
        else weight
        for name, weight in original.items()
    }


METHOD = UnlearningMethod(
    name="task_vector", loss=loss, settings=TaskVectorSettings, finish=negated
)
