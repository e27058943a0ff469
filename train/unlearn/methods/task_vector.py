"""Task arithmetic (Ilharco et al. 2023, section 3): learn the forget set, and subtract the change.

    theta = theta_original - scale * (theta_finetuned - theta_original)

The fine-tuning is the usual loss on the forget texts, through the one loop; log and exposures are
from it. Pass: forget.
"""

from collections.abc import Mapping

from inject.settings import PositiveFloat
from train.unlearn.method import Batch, FullOnly, Tensor, UnlearningMethod


class TaskVectorSettings(FullOnly):
    """Hyper-parameters of the task vector."""

    scale: PositiveFloat
    """Multiple of the change towards the forget set to subtract."""


def loss(batch: Batch) -> Tensor:
    """Return the usual loss of each forget text, [texts]."""
    return batch.forget.loss


def negated(
    original: Mapping[str, Tensor],
    trained: Mapping[str, Tensor],
    settings: TaskVectorSettings,
) -> Mapping[str, Tensor]:
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
