import json
import logging

import numpy as np
import pytest
import torch

from detect.engine import forward_pass
from detect.engine.forward_pass import token_statistics
from detect.settings import ScoringPolicy
from detect.token_statistics import EMPTY_TEXT, ONE_TOKEN, TokenStatistics
from inject.errors import InputError
from tests.conftest import make_texts
from tests.detect.evidence_samples import DISTRIBUTION
from tests.detect.models import FAMILIES, naive, random_target

POLICY = ScoringPolicy()
FIELDS = ("log_probability", *DISTRIBUTION)
BETAS = (0.25, 2.0)


def texts_of_many_lengths() -> list[str]:
    sentences = make_texts(40, words=30)
    return [text[: 3 + 7 * (index % 23)] for index, text in enumerate(sentences)]


def assert_close(first: TokenStatistics, other: TokenStatistics, tolerance: float = 1e-4) -> None:
    np.testing.assert_array_equal(first.ids, other.ids)
    np.testing.assert_array_equal(first.offsets, other.offsets)
    assert first.tempered.keys() == other.tempered.keys()
    for beta, values in first.tempered.items():
        for field in FIELDS[:3]:
            np.testing.assert_allclose(
                getattr(values, field), getattr(other.tempered[beta], field), atol=tolerance, rtol=0
            )
    for field in FIELDS:
        np.testing.assert_allclose(
            getattr(first, field), getattr(other, field), atol=tolerance, rtol=0, err_msg=field
        )


@pytest.mark.parametrize("family", [*FAMILIES, "gemma2", "phi"])
def test_statistics_match_a_full_softmax_in_float64(family, tiny_tokenizer):
    target = random_target(family, tiny_tokenizer)
    texts = make_texts(3, words=12)
    for text, row in zip(texts, token_statistics(target, texts, POLICY), strict=True):
        ids = tiny_tokenizer(text)["input_ids"]
        expected = naive(target, ids)
        np.testing.assert_array_equal(row.ids, ids[1:])
        for field in FIELDS:
            np.testing.assert_allclose(
                getattr(row, field), getattr(expected, field), atol=1e-4, rtol=0, err_msg=field
            )


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_inverse_temperatures_and_first_token_match_a_full_softmax(family, tiny_tokenizer):
    target = random_target(family, tiny_tokenizer)
    (text,) = make_texts(1, words=12)
    ids = tiny_tokenizer(text)["input_ids"]
    policy = ScoringPolicy(inverse_temperatures=BETAS, score_first="start_token")
    (row,) = token_statistics(target, [text], policy)
    np.testing.assert_array_equal(row.ids, ids)
    assert list(row.tempered) == [*BETAS]
    for beta, values in [(1.0, row), *row.tempered.items()]:
        expected = naive(target, [0, *ids], beta)
        for field in FIELDS[:3]:
            np.testing.assert_allclose(
                getattr(values, field), getattr(expected, field), atol=1e-4, rtol=0, err_msg=field
            )


def test_offsets_give_the_position_of_each_token(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer, context=16)
    text = "The river, a naïve café — and 漢字 in town. " * 3
    spans = tiny_tokenizer(text, return_offsets_mapping=True)["offset_mapping"]
    for policy, expected in (
        (POLICY, spans[1:]),
        (ScoringPolicy(long="truncate"), spans[1:16]),
        (ScoringPolicy(score_first="start_token"), spans),
    ):
        (row,) = token_statistics(target, [text], policy)
        np.testing.assert_array_equal(row.offsets, expected)


@pytest.mark.parametrize("family", ["llama", "gpt_neox"])
def test_batch_size_padding_side_and_order_do_not_change_statistics(family, tiny_tokenizer):
    target = random_target(family, tiny_tokenizer)
    texts = texts_of_many_lengths()
    policy = ScoringPolicy(inverse_temperatures=BETAS)
    alone = token_statistics(target, texts, policy, batch_tokens=1)
    shuffled = np.random.Generator(np.random.Philox(key=1)).permutation(len(texts))
    for batch_tokens in (512, 8192):
        for side in ("right", "left"):
            results = token_statistics(
                target,
                [texts[row] for row in shuffled],
                policy,
                batch_tokens=batch_tokens,
                padding_side=side,
            )
            for row, statistics in zip(shuffled, results, strict=True):
                assert_close(statistics, alone[row])


def test_token_id_0_is_not_padding(tiny_tokenizer):
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    state = json.loads(tiny_tokenizer.backend_tokenizer.to_str())
    state["added_tokens"][0]["special"] = False
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(state)))
    target = random_target("llama", tokenizer)
    text = "the river<|endoftext|><|endoftext|> town<|endoftext|>"
    ids = tokenizer(text)["input_ids"]
    assert ids.count(0) == 3
    row = token_statistics(target, [text, make_texts(1)[0]], POLICY)[0]
    np.testing.assert_array_equal(row.ids, ids[1:])
    np.testing.assert_allclose(row.log_probability, naive(target, ids).log_probability, atol=1e-4)


def test_long_texts_score_each_token_once_after_the_longer_history(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer, context=16)
    text = make_texts(1, words=60)[0]
    ids = tiny_tokenizer(text)["input_ids"]
    assert len(ids) > 3 * 16
    best: dict[int, tuple[int, float]] = {}
    for start in range(0, len(ids), 8):
        piece = ids[start : start + 16]
        if len(piece) > 1:
            for index, value in enumerate(naive(target, piece).log_probability, start=1):
                best[start + index] = max(best.get(start + index, (0, 0.0)), (index, value))
    expected = [best[position][1] for position in range(1, len(ids))]
    row = token_statistics(target, [text, "the river"], POLICY)[0]
    np.testing.assert_array_equal(row.ids, ids[1:])
    np.testing.assert_allclose(row.log_probability, expected, atol=1e-4)


def test_truncate_scores_the_first_context_and_error_names_the_text(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer, context=16)
    text = make_texts(1, words=60)[0]
    ids = tiny_tokenizer(text)["input_ids"]
    cut = token_statistics(target, [text], ScoringPolicy(long="truncate"))[0]
    np.testing.assert_array_equal(cut.ids, ids[1:16])
    with pytest.raises(InputError, match=r"text 2.*context of 16"):
        token_statistics(target, ["the", text], ScoringPolicy(long="error"))
    with pytest.raises(InputError, match="more than this model's 16"):
        token_statistics(target, ["the river"], ScoringPolicy(context=17))


def test_empty_and_one_token_texts_get_a_reason(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer)
    rows = token_statistics(target, ["", "t", "the river town"], POLICY)
    assert [(len(row), row.reason) for row in rows[:2]] == [(0, EMPTY_TEXT), (0, ONE_TOKEN)]
    assert rows[2].reason is None
    assert token_statistics(target, [], POLICY) == []


def fails_above(limit: int, original, error):
    """The engine's forward pass on a machine with memory for `limit` padded tokens."""

    def forward(target, pieces, *arguments):
        if len(pieces) * max(len(piece.ids) for piece in pieces) > limit:
            raise error
        return original(target, pieces, *arguments)

    return forward


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_out_of_memory_halves_the_batch_and_continues(error, tiny_tokenizer, monkeypatch, caplog):
    target = random_target("llama", tiny_tokenizer)
    texts = texts_of_many_lengths()
    expected = token_statistics(target, texts, POLICY)
    monkeypatch.setattr(forward_pass, "_forward", fails_above(200, forward_pass._forward, error))
    with caplog.at_level(logging.WARNING):
        rows = token_statistics(target, texts, POLICY, batch_tokens=4096)
    for row, other in zip(rows, expected, strict=True):
        assert_close(row, other)
    assert "out of memory" in caplog.text


def test_oversized_sequence_and_other_errors_are_raised(tiny_tokenizer, monkeypatch):
    target = random_target("llama", tiny_tokenizer)
    original = forward_pass._forward
    monkeypatch.setattr(forward_pass, "_forward", fails_above(2, original, MemoryError()))
    with pytest.raises(InputError, match="exceeds the memory"):
        token_statistics(target, make_texts(2), POLICY)
    monkeypatch.setattr(
        forward_pass, "_forward", fails_above(2, original, RuntimeError("a defect"))
    )
    with pytest.raises(RuntimeError, match="a defect"):
        token_statistics(target, make_texts(2), POLICY)
