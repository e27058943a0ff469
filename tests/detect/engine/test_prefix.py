"""Statistics after a prefix: against one unbatched, uncached float64 softmax over the whole."""

import logging

import numpy as np
import pytest

from detect.engine.forward_pass import token_statistics
from detect.engine.prefix import join_shots, shared_prefix, start_ids
from detect.settings import ScoringPolicy
from detect.token_statistics import EMPTY_TEXT, ONE_TOKEN
from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError
from tests.conftest import make_texts
from tests.detect.engine.test_forward_pass import assert_close, texts_of_many_lengths
from tests.detect.models import CONTEXT, FAMILIES, naive, random_target, with_start_token

POLICY = ScoringPolicy()
EVERY_FAMILY = (*FAMILIES, "phi", "gpt2")
SHOTS = make_texts(3, seed=21, words=5)


def prefix_ids(tokenizer, shots=SHOTS, policy=POLICY):
    return [token for part in join_shots(tokenizer, shots, "\n\n", policy) for token in part]


def check_against_whole(row, target, text, prefix, own):
    """Compare with the whole sequence in one float64 softmax; `own` are the text's ids in it."""
    whole = naive(target, [*prefix, *own])
    count = len(row)
    np.testing.assert_array_equal(row.ids, own[len(own) - count :], err_msg=text)
    for field in ("log_probability", "mean_log_prob", "std_log_prob", "entropy", "rank"):
        np.testing.assert_allclose(
            getattr(row, field), getattr(whole, field)[-count:], atol=1e-4, rtol=0, err_msg=field
        )


@pytest.mark.parametrize("family", EVERY_FAMILY)
@pytest.mark.parametrize("cached", [True, False], ids=["cached", "reread"])
def test_only_text_tokens_are_scored_after_the_prefix_and_their_history(
    family, cached, tiny_tokenizer
):
    """Known mistake: ReCaLL also scoring the prefix."""
    target = random_target(family, tiny_tokenizer)
    prefix = shared_prefix(target, prefix_ids(tiny_tokenizer), cached=cached)
    assert bool(prefix.cached) == cached
    texts = make_texts(3, words=9)
    results = token_statistics(target, texts, POLICY, prefix)
    plain = token_statistics(target, texts, POLICY)
    for text, row, other in zip(texts, results, plain, strict=True):
        own = tiny_tokenizer(text)["input_ids"]
        np.testing.assert_array_equal(row.ids, other.ids)
        check_against_whole(row, target, text, prefix.ids, own)


@pytest.mark.parametrize("family", EVERY_FAMILY)
@pytest.mark.parametrize("side", ["left", "right"])
def test_cache_batch_padding_and_order_do_not_change_statistics(family, side, tiny_tokenizer):
    target = random_target(family, tiny_tokenizer)
    ids = prefix_ids(tiny_tokenizer)
    texts = texts_of_many_lengths()
    alone = token_statistics(
        target, texts, POLICY, shared_prefix(target, ids, cached=False), batch_tokens=1
    )
    shared = shared_prefix(target, ids)
    together = token_statistics(target, texts[::-1], POLICY, shared, padding_side=side)[::-1]
    again = token_statistics(target, texts, POLICY, shared, batch_tokens=100, padding_side=side)
    for first, other, third in zip(alone, together, again, strict=True):
        assert_close(first, other)
        assert_close(first, third)


def test_start_token_comes_once_before_the_prefix_and_all_text_tokens_are_scored(
    tiny_tokenizer,
):
    tokenizer = with_start_token(tiny_tokenizer, 1)
    target = random_target("llama", tokenizer)
    ids = prefix_ids(tokenizer)
    assert ids[0] == 1
    assert ids.count(1) == 1
    assert start_ids(tokenizer, ScoringPolicy(bos="never")) == []
    texts = make_texts(3, words=9)
    prefix = shared_prefix(target, ids)
    for text, row in zip(texts, token_statistics(target, texts, POLICY, prefix), strict=True):
        own = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert len(row) == len(own)
        check_against_whole(row, target, text, ids, own)


def test_joined_ids_are_not_tokenised_again(tiny_tokenizer):
    """Pitfall of codec: retokenising the join misaligns."""
    vocabulary = tiny_tokenizer.get_vocab()
    word = next(
        item for item in sorted(vocabulary) if item.isalpha() and item.isascii() and len(item) > 2
    )
    shots = [word[:1], word[1:]]
    parts = join_shots(tiny_tokenizer, shots, "", POLICY)
    joined = [item for part in parts for item in part]
    first, second, whole, between = (
        ids.tolist() for ids in encode_texts(tiny_tokenizer, [*shots, word, "\n\n"])
    )
    assert joined == [*first, *second]
    assert joined != whole == [vocabulary[word]]
    assert join_shots(tiny_tokenizer, shots, "\n\n", POLICY)[1][-len(between) :] == between


def test_texts_of_zero_or_one_token_have_a_reason(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer)
    prefix = shared_prefix(target, prefix_ids(tiny_tokenizer))
    empty, single, other = token_statistics(target, ["", "a", "天地玄黃"], POLICY, prefix)
    assert (empty.reason, single.reason, other.reason) == (EMPTY_TEXT, ONE_TOKEN, None)


@pytest.mark.parametrize("cached", [True, False])
def test_long_text_after_a_prefix_is_read_in_windows(cached, tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer)
    prefix = shared_prefix(target, prefix_ids(tiny_tokenizer, SHOTS[:1]), cached=cached)
    text = " ".join(make_texts(6, words=40))
    own = tiny_tokenizer(text)["input_ids"]
    room = CONTEXT - len(prefix.ids)
    [statistics] = token_statistics(target, [text], POLICY, prefix)
    np.testing.assert_array_equal(statistics.ids, own[1:])
    # Windows computed separately: half stride, each token scored with its longer history.
    expected, start, done = [], 0, 1
    while done < len(own):
        stop = min(start + room, len(own))
        whole = naive(target, [*prefix.ids, *own[start:stop]]).log_probability
        expected += list(whole[len(whole) - (stop - done) :])
        start, done = start + room // 2, stop
    np.testing.assert_allclose(statistics.log_probability, expected, atol=1e-4, rtol=0)


def test_prefix_that_fills_the_context_is_rejected(tiny_tokenizer):
    target = random_target("llama", tiny_tokenizer)
    ids = (prefix_ids(tiny_tokenizer) * 20)[: CONTEXT - 1]
    with pytest.raises(
        InputError, match=f"{CONTEXT - 1} tokens leaves 1 of a context of {CONTEXT}"
    ):
        token_statistics(target, ["some text"], POLICY, shared_prefix(target, ids))


def test_model_with_unsupported_cache_rereads_the_prefix_and_reports_it(tiny_tokenizer, caplog):
    target = random_target("gemma2", tiny_tokenizer)
    with caplog.at_level(logging.WARNING):
        prefix = shared_prefix(target, prefix_ids(tiny_tokenizer))
    assert not prefix.cached
    assert "the prefix is read before every text" in caplog.text
    texts = make_texts(2, words=6)
    for text, row in zip(texts, token_statistics(target, texts, POLICY, prefix), strict=True):
        check_against_whole(row, target, text, prefix.ids, tiny_tokenizer(text)["input_ids"])
