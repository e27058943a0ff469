"""Batches: every sequence once, the longest first, padding only by lengths."""

import numpy as np
import pytest
import torch

from detect.engine.batching import pad_sequences, run_in_batches
from tests.detect.models import random_target


@pytest.fixture
def target(tiny_tokenizer):
    return random_target("llama", tiny_tokenizer)


def batches(target, lengths, **limits):
    return [
        (list(batch), result)
        for batch, result in run_in_batches(target, lengths, sum, length=int, **limits)
    ]


def test_batch_contains_as_many_texts_as_fit_when_padded(target):
    plan = batches(target, [9, 5, 4, 3, 3, 1], batch_tokens=10)
    assert plan == [([9], 9), ([5, 4], 9), ([3, 3, 1], 7)]
    assert [batch for batch, _ in batches(target, [4, 4, 4], batch_tokens=99, max_sequences=2)] == [
        [4, 4],
        [4],
    ]
    # A sequence longer than the batch limit forms its own batch.
    assert batches(target, [50, 2], batch_tokens=10) == [([50], 50), ([2], 2)]


def test_reduced_batch_size_persists(target):
    sizes = []

    def forward(batch):
        if len(batch) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        sizes.append(len(batch))
        return

    batch_sizes = [size for batch, _ in run_in_batches(
        target, [2] * 9, forward, length=int, batch_tokens=16
    ) for size in batch]  # fmt: skip
    assert batch_sizes == [2] * 9
    assert sizes == [2, 2, 2, 2, 1]


@pytest.mark.parametrize(("side", "starts"), [("left", [0, 2]), ("right", [0, 0])])
def test_padding_follows_lengths_not_ids(target, side, starts):
    inputs, begun, length = pad_sequences(target, [np.array([1, 0, 0]), (0,)], side=side)
    assert length == 3
    assert begun.tolist() == starts
    second = [0, 0, 1] if side == "left" else [1, 0, 0]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1], second]
    assert inputs["position_ids"].tolist() == [[0, 1, 2], [0, 0, 0]]
