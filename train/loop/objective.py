"""What a run minimises in place of the model's own loss: the seam of unlearning.

A run without an objective takes the path that it always took. With one, each window brings inputs
of the objective's own, the loss of an optimiser step is the mean over its windows, and what went
into the model is read back from the same tensors that the loss was computed on. The mean is over
the whole step: parts of it, on several processes or in several passes, give the same gradient.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy.typing as npt
import torch


class Objective(Protocol):
    """A loss that a run brings along."""

    window_tokens: int
    """Tokens that the model is fed for each window, all rows together."""
    blocks: int | None
    """How many blocks of the model are computed; None for the whole model."""
    asked: float
    """Tokens that another model is fed in a forward pass alone, for each token of the model's."""

    def begin(self, model: torch.nn.Module) -> None:
        """Take the model that will be trained, adapters included, before the first step."""
        ...

    def inputs(self, epoch: int, window: int) -> Mapping[str, npt.NDArray[Any]]:
        """Return what a window brings beside its ids: arrays of one shape for all windows."""
        ...

    def losses(self, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the loss of each window, shape [windows].

        Args:
            model: as wrapped for several processes; called once with gradients.
            inputs: `input_ids` and all that `inputs` returned, each [windows, …], on the device;
                and `counted`, [windows], 0 for those that only fill up the end.
        """
        ...

    def fed(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the ids that the model was fed, shape [windows, window_tokens]."""
        ...
