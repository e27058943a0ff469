"""A background laid out several times, against a corpus that is tiled in memory."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.plan.plan import FACTS_FILE, read_plan, write_plan
from inject.plan.settings import Copies, Placement
from inject.stream.view import clean_view, repeated
from tests.inject.streams import (
    ArraySource,
    naive_find,
    naive_stream,
    plan_for,
    random_source,
    spiked_examples,
)


def tiled(source: ArraySource, tokens: int, times: int) -> ArraySource:
    """Return a corpus of the first tokens, several times, token by token."""
    unique = math.ceil(tokens / times)
    starts = [place for place in range(tokens) if place % unique in set(source.doc_starts.tolist())]
    return ArraySource(
        np.array([source.tokens[place % unique] for place in range(tokens)]), np.array(starts)
    )


@given(tokens=st.integers(20, 300), times=st.integers(1, 9), data=st.data())
@settings(max_examples=60, deadline=None)
def test_repeated_source_equals_a_tiled_corpus(tokens, times, data):
    source = random_source(tokens + data.draw(st.integers(0, 50)), seed=tokens)
    stream, expected = repeated(source, tokens=tokens, times=times), tiled(source, tokens, times)
    start = data.draw(st.integers(0, tokens))
    stop = data.draw(st.integers(start, tokens))
    assert np.array_equal(stream.read(start, stop), expected.tokens[start:stop])
    if times > 1:
        assert stream.n_tokens == tokens
        assert stream.doc_starts.tolist() == expected.doc_starts.tolist()


@given(
    policy=st.sampled_from(["splice", "window", "document"]),
    times=st.integers(2, 7),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_copies_are_placed_once_in_the_whole_repeated_stream(policy, times, seed):
    budget, context = 3000, 64
    # No longer than the unique tokens.
    source = random_source(math.ceil(budget / times), seed=seed)
    examples, tokens = spiked_examples(5, 3, seed=seed)
    plan = plan_for(
        examples, tokens, Placement(policy=policy), source=source, budget=budget,
        context=context, seed=seed, copies=Copies(levels=(0, 1, 3)), repeat=times,
    )  # fmt: skip
    window = context if policy == "window" else None
    whole = tiled(source, budget, times)
    stream = naive_stream(whole, plan.insertions(), budget, window=window)
    assert np.array_equal(plan.view(source).read(0, budget), stream)
    for example in examples:
        name = example.example_id
        assert len(naive_find(stream, tokens[name])) == plan.realised()[name]
    # The same draws as over a corpus without repetition: only the background differs.
    other = plan_for(
        examples, tokens, Placement(policy=policy), source=whole, budget=budget,
        context=context, seed=seed, copies=Copies(levels=(0, 1, 3)),
    )  # fmt: skip
    assert other.copies.equals(plan.copies)
    documents = plan.view(source).document_starts()
    assert np.array_equal(documents, other.view(whole).document_starts())


def test_clean_twin_of_a_repeated_background_is_the_tiled_corpus():
    source = random_source(700, seed=2)
    examples, tokens = spiked_examples(0, 3)
    expected = tiled(source, 2000, 3).tokens
    plan = plan_for(examples, tokens, source=source, budget=2000, repeat=3)
    assert np.array_equal(plan.view(source).read(0, 2000), expected)
    exported = clean_view(plan.clean_stream(source), tokens=2000, context=64)
    assert np.array_equal(exported.read(0, 2000), expected)


def test_plan_facts_name_a_repetition_only_if_there_is_one(tmp_path):
    source = random_source(2000, seed=1)
    examples, tokens = spiked_examples(2, 0)
    for times, named in ((1, False), (4, True)):
        plan = plan_for(examples, tokens, source=source, repeat=times)
        write_plan(tmp_path, plan)
        assert ("repeat" in (tmp_path / FACTS_FILE).read_text()) == named
        assert read_plan(tmp_path).facts == plan.facts


def test_a_corpus_without_enough_unique_tokens_is_rejected():
    source = random_source(499, seed=1)
    examples, tokens = spiked_examples(2, 0)
    with pytest.raises(InputError, match="has 499 tokens, but the budget requires 500"):
        plan_for(examples, tokens, source=source, budget=2000, repeat=4)
