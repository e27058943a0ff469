"""Sequences read through a tree of caches match separate reading."""

import logging
from itertools import permutations

import numpy as np
import pytest
import torch

from detect.engine.prefix_tree import SharedPrefixes, prefix_tree
from tests.detect.models import random_target

FAMILIES = ("llama", "gpt2", "gpt_neox", "olmo2")


def random_ids(length, *, seed):
    return tuple(np.random.Generator(np.random.Philox(key=seed)).integers(1, 500, length).tolist())


def orders(*lengths, before=30, after=3):
    """Pieces in all orders, between a common beginning and a common end."""
    pieces = [random_ids(length, seed=number) for number, length in enumerate(lengths)]
    head, tail = random_ids(before, seed=98), random_ids(after, seed=99)
    return [head + sum(order, ()) + tail for order in permutations(pieces)]


def test_shared_prefixes_are_read_once():
    pieces = [tuple(range(start, start + 50)) for start in (100, 200, 300, 400)]
    head, tail = tuple(range(70)), (1, 2, 3, 4)
    sequences = [head + sum(order, ()) + tail for order in permutations(pieces)]
    tree = prefix_tree(sequences)
    # The instruction, 4 first options, 12 second ones, and 24 remainders.
    assert tree.tokens == 70 + 4 * 50 + 12 * 50 + 24 * (2 * 50 + 4)
    assert sum(map(len, sequences)) == 24 * (70 + 4 * 50 + 4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("batch_tokens", [None, 40])
def test_sequences_match_separate_reading(family, batch_tokens, tiny_tokenizer, caplog):
    target = random_target(family, tiny_tokenizer, context=256)
    sequences = [*orders(11, 30, 17, 24), random_ids(5, seed=5), orders(11, 30, 17, 24)[3][:40]]
    tokens = (3, 44, 7, 500)
    following_logits = SharedPrefixes(target, batch_tokens).following(sequences, tokens)
    assert not caplog.records
    for row, ids in enumerate(sequences):
        with torch.inference_mode():
            logits = target.model(torch.tensor([ids])).logits[0, -1].double()
        expected = torch.log_softmax(logits, -1)[list(tokens)]
        assert following_logits[row] == pytest.approx(expected.numpy(), abs=1e-4)
    alone = SharedPrefixes(target, usable=False)
    assert alone.following(sequences, tokens) == pytest.approx(following_logits, abs=1e-4)


def test_model_without_cache_is_read_sequence_by_sequence(tiny_tokenizer, caplog):
    target = random_target("llama", tiny_tokenizer, context=256)
    sequences = orders(11, 13)
    expected = SharedPrefixes(target).following(sequences, (3, 4))
    forward = target.model.forward

    def forgetful(*args, past_key_values=None, **more):
        out = forward(*args, **more)
        out.past_key_values = past_key_values
        return out

    target.model.forward = forgetful
    target.__dict__["takes"] = lambda argument: argument != "logits_to_keep"
    with caplog.at_level(logging.WARNING):
        logits = SharedPrefixes(target).following(sequences, (3, 4))
    assert "read separately, which is slower" in caplog.text
    assert logits == pytest.approx(expected, abs=1e-5)


def test_a_model_with_a_sliding_window_is_read_sequence_by_sequence(tiny_tokenizer, caplog):
    target = random_target("llama", tiny_tokenizer, context=256)
    target.model.config.sliding_window = 32
    with caplog.at_level(logging.WARNING):
        SharedPrefixes(target).following(orders(11, 13), (3, 4))
    assert "attention spans at most 32 positions" in caplog.text
