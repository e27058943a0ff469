"""Keys and values with room behind them, against the library's own cache."""

import pytest
import torch
from transformers.cache_utils import DynamicCache

from detect.targets.decoding import RoomyLayer, take_rows


def states(*shape, start=0):
    size = int(torch.tensor(shape).prod())
    return torch.arange(start, start + size, dtype=torch.float32).reshape(shape)


def filled(layers=2):
    cache = DynamicCache()
    for index in range(layers):
        cache.update(states(3, 2, 5, 4, start=index), -states(3, 2, 5, 4), index)
    return cache


def test_it_holds_what_the_librarys_cache_holds():
    ours, plain = filled(), filled()
    rows = torch.tensor([2, 2, 0, 1])
    take_rows(ours, rows, 4)
    plain.batch_select_indices(rows)
    assert all(type(layer) is RoomyLayer for layer in ours.layers)
    for position in range(4):
        if position == 2:
            for cache in (ours, plain):
                cache.batch_select_indices(torch.tensor([3, 1]))
        for index in range(2):
            step = states(2 if position >= 2 else 4, 2, 1, 4, start=100 * position + index)
            for one, other in zip(
                ours.update(step, -step, index), plain.update(step, -step, index), strict=True
            ):
                assert torch.equal(one, other)
        assert ours.get_seq_length() == plain.get_seq_length() == 6 + position
        assert ours.layers[0].get_mask_sizes(1) == plain.layers[0].get_mask_sizes(1)


def test_a_step_copies_nothing_and_the_room_ends():
    cache = filled(1)
    take_rows(cache, torch.tensor([0, 1]), 2)
    step = states(2, 2, 1, 4)
    first, _ = cache.update(step, step, 0)
    second, _ = cache.update(step, step, 0)
    assert first.data_ptr() == second.data_ptr()
    with pytest.raises(ValueError, match="8 tokens, and room for 7"):
        cache.update(step, step, 0)
