"""Keys and values of rows that grow by a token a step, in room that was made before.

The library's own cache copies all keys and values at each token, which took half of the time of 20
continuations on a CPU. Here the room for all tokens is made once, when a batch's rows take over
what was read of their prompts, and a step writes its own token. Layers that hold anything but all
keys and values (a sliding window, a state) stay as the library made them. Memory: rows × (tokens
read + room) keys and values a layer, of which the library's would hold as much at the last token,
twice while it copies.
"""

from typing import Any

import torch
from transformers.cache_utils import DynamicLayer


class RoomyLayer(DynamicLayer):
    """One layer's keys and values, [rows, heads, tokens, size], with room behind the last token."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, room: int) -> None:
        """Make room for `room` further tokens behind the ones given, which are copied."""
        super().__init__()
        self.lazy_initialization(keys, values)
        self._keys, self.keys = _with_room(keys, room)
        self._values, self.values = _with_room(values, room)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the tokens of a step; return all keys and values.

        Raises:
            ValueError: there is no room for them.
        """
        start = self.keys.shape[-2]
        end = start + key_states.shape[-2]
        if end > self._keys.shape[-2]:
            raise ValueError(f"{end} tokens, and room for {self._keys.shape[-2]}")
        self._keys[..., start:end, :] = key_states
        self._values[..., start:end, :] = value_states
        self.keys, self.values = self._keys[..., :end, :], self._values[..., :end, :]
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep some rows, in the order given, and their room."""
        room = self._keys.shape[-2] - self.keys.shape[-2]
        where = indices.to(self.keys.device)
        self._keys, self.keys = _with_room(self.keys[where], room)
        self._values, self.values = _with_room(self.values[where], room)


def take_rows(cache: Any, rows: torch.Tensor, room: int) -> None:
    """Let a cache hold rows of it, in the order given and perhaps repeatedly, with room for more.

    Args:
        cache: what a pass over prompts left; changed in place.
        rows: numbers of the prompts, one a row.
        room: further tokens of a row at most.
    """
    for index, layer in enumerate(cache.layers):
        # A subclass may store something else, or less.
        if type(layer) is DynamicLayer and layer.is_initialized:
            where = rows.to(layer.keys.device)
            cache.layers[index] = RoomyLayer(layer.keys[where], layer.values[where], room)
        else:
            layer.batch_select_indices(rows)


def _with_room(states: torch.Tensor, room: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a buffer that holds states and room behind them, and its part that is filled."""
    rows, heads, tokens, size = states.shape
    buffer = states.new_empty(rows, heads, tokens + room, size)
    filled = buffer[..., :tokens, :]
    filled.copy_(states)
    return buffer, filled
