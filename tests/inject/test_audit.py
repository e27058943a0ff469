import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inject.audit as module
from inject.audit import (
    AuditFailed,
    audit,
    find_occurrences,
    read_audit,
    write_audit,
)
from inject.plan import make_plan
from inject.settings import Copies, Placement
from tests.inject.streams import ArraySource, naive_find, random_source, spiked_examples


@given(
    haystack=st.lists(st.integers(0, 2), max_size=200),
    needles=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), max_size=6),
    block=st.integers(1, 64),
)
@settings(max_examples=150, deadline=None)
def test_occurrences_equal_brute_force(haystack, needles, block):
    stream = ArraySource(np.array(haystack, dtype=np.int64))
    patterns = {str(index): np.array(needle) for index, needle in enumerate(needles)}
    original = module._BLOCK
    module._BLOCK = block
    try:
        found = sorted(find_occurrences(stream, patterns))
    finally:
        module._BLOCK = original
    expected = sorted(
        (name, start)
        for name, needle in patterns.items()
        for start in naive_find(stream.tokens, needle)
    )
    assert found == expected


@pytest.fixture
def planned():
    source = random_source(6000, seed=3)
    examples, tokens = spiked_examples(15, 15)
    tokens = {name: np.resize(ids, 24) for name, ids in tokens.items()}
    plan = make_plan(
        examples, tokens, copies=Copies(poisson=2), placement=Placement(), seed=1, source=source,
        budget=5000, context=64, end_token=0, vocabulary=60_000,
    )  # fmt: skip
    return source, examples, tokens, plan


def run(source, examples, tokens, plan, *, view=None, realised=None):
    return audit(
        view or plan.view(source),
        source,
        source.doc_starts,
        tokens=tokens,
        realised=realised or plan.realised(),
        sides={example.example_id: example.side for example in examples},
    )


def test_a_true_plan_passes(planned, tmp_path):
    source, examples, tokens, plan = planned
    report = run(*planned)
    assert report.passed
    assert report.copies_found == report.copies_expected == plan.copies.num_rows
    assert report.members == report.nonmembers == 15
    write_audit(tmp_path, report)
    assert read_audit(tmp_path) == report


def test_a_lost_copy_fails(planned):
    source, examples, tokens, plan = planned
    member = plan.copies["example_id"][0].as_py()
    realised = plan.realised()
    report = run(*planned, realised={**realised, member: realised[member] + 1})
    assert not report.passed
    assert report.wrong_counts[0]["example_id"] == member


def test_a_spiked_non_member_fails(planned, tmp_path):
    source, examples, tokens, plan = planned
    stream = plan.view(source).read(0, 5000)
    stream[100:124] = tokens[examples[-1].example_id]
    report = run(*planned, view=ArraySource(stream))
    assert not report.passed
    assert report.nonmembers_found[0] == {
        "example_id": examples[-1].example_id,
        "position": 100,
    }
    assert examples[-1].example_id in str(AuditFailed(report, tmp_path))


def test_an_example_in_the_background_fails_even_with_other_edges(planned):
    source, examples, tokens, plan = planned
    text = tokens[examples[0].example_id].copy()
    text[0], text[-1] = 1, 2
    dirty = ArraySource(source.tokens.copy(), source.doc_starts)
    dirty.tokens[5500:5524] = text
    report = audit(
        plan.view(source),
        dirty,
        dirty.doc_starts,
        tokens=tokens,
        realised=plan.realised(),
        sides={example.example_id: example.side for example in examples},
    )
    assert not report.passed
    hit = report.background_hits[0]
    assert hit["example_id"] == examples[0].example_id
    start = dirty.doc_starts[hit["document"]]
    assert start <= hit["position"]
