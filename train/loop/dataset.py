"""The windows of all epochs as one sequence, each epoch in its keyed order.

Every item carries its epoch and its window, so that the loop can record the fed windows, and the
other inputs of the model (`train.window_inputs`). Cost: one window read through the view (about 14
µs); one sort at the start of an epoch.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from inject.keyed import I64
from inject.stream.order import window_order
from train.window_inputs import IGNORED


class WindowSource(Protocol):
    """A stream of tokens cut into windows: `inject.stream.view.StreamView`."""

    @property
    def n_windows(self) -> int:
        """Windows of an epoch."""
        ...

    @property
    def context(self) -> int:
        """Tokens of a window."""
        ...

    def window(self, index: int) -> I64:
        """Return window `index`, shape [context]."""
        ...


class Objective(Protocol):
    """An objective that replaces the model's own loss: the interface for unlearning.

    Each window has inputs from the objective; the loss of an optimiser step is the mean over its
    windows, regardless of their distribution; and the fed ids are read back from the same tensors
    as the loss.
    """

    window_tokens: int
    """Tokens fed per window, all rows together."""
    blocks: int | None
    """Number of computed blocks; None for the whole model."""
    asked: float
    """Tokens fed to another model in forward passes, per token of this model."""

    def begin(self, model: torch.nn.Module) -> None:
        """Receive the model to train, adapters included, before the first step."""
        ...

    def inputs(self, epoch: int, window: int) -> Mapping[str, npt.NDArray[Any]]:
        """Return a window's further inputs: arrays of one shape for all windows."""
        ...

    def losses(self, model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the loss of each window, shape [windows].

        Args:
            model: as wrapped for several processes; called once with gradients.
            inputs: `input_ids` and all that `inputs` returned, each [windows, …], on the device;
                and `counted`, [windows], 0 for windows that only pad the end.
        """
        ...

    def fed(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the ids that the model was fed, shape [windows, window_tokens]."""
        ...


class FedWindow(NamedTuple):
    """One window on its way into the model."""

    epoch: int
    window: int
    position: int
    """Its index in the sequence of all epochs."""


ExtraInputs = Callable[[int, I64], Mapping[str, I64]]
"""From a window and its ids to further inputs, each of shape [context]."""


Item = dict[str, Any]
"""One window: `fed`, and all inputs of the model, `input_ids` and further arrays."""


class WindowSequence(torch.utils.data.Dataset[Item]):
    """The windows of all epochs in training order.

    Args:
        view: the windows.
        epochs: passes over all windows.
        seed: keys their order.
        extra_inputs: further inputs of the model; None for none.
        objective: gives further inputs, which may change from epoch to epoch; None for none.
        multiple_of: pad the end to a multiple of this, with windows without a loss, so that several
            processes make the same passes; these windows have the number -1.
    """

    def __init__(
        self,
        view: WindowSource,
        *,
        epochs: int,
        seed: int,
        extra_inputs: ExtraInputs | None = None,
        objective: Objective | None = None,
        multiple_of: int = 1,
    ) -> None:
        self._view = view
        self.extra_inputs = extra_inputs
        self.objective = objective
        self._epochs = epochs
        self._seed = seed
        self._epoch = -1
        self._order = np.zeros(0, dtype=np.int64)

        self.windows = epochs * view.n_windows
        """Windows of all epochs, without padding windows."""
        self._length = -(-self.windows // multiple_of) * multiple_of

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, position: int) -> Item:
        if position >= self.windows:
            return self._padding_item(position)
        epoch, place = divmod(position, self._view.n_windows)
        if epoch != self._epoch:
            self._order = window_order(self._seed, epoch, self._view.n_windows)
            self._epoch = epoch
        window = int(self._order[place])
        ids = self._view.window(window)
        fed = FedWindow(epoch, window, position)
        return {"fed": fed, "input_ids": ids, **self._inputs_beside(epoch, window, ids)}

    def _inputs_beside(self, epoch: int, window: int, ids: I64) -> Mapping[str, npt.NDArray[Any]]:
        if self.objective is not None:
            return self.objective.inputs(epoch, window)
        if self.extra_inputs is not None:
            return self.extra_inputs(window, ids)
        # Padding windows have separate labels, so all windows must have some.
        return {} if self._length == self.windows else {"labels": ids}

    def _padding_item(self, position: int) -> Item:
        ids = self._view.window(0)
        return {
            "fed": FedWindow(-1, -1, position),
            "input_ids": ids,
            **self._inputs_beside(0, 0, ids),
            "labels": np.full_like(ids, IGNORED),
        }


def collate(windows: list[Item]) -> dict[str, Any]:
    """Return the inputs of one step: ids, labels and others, [windows, context], and `fed`."""
    inputs: dict[str, Any] = {
        name: torch.from_numpy(np.stack([window[name] for window in windows]))
        for name in windows[0]
        if name != "fed"
    }
    return {
        "labels": inputs["input_ids"],
        **inputs,
        "fed": [window["fed"] for window in windows],
    }
