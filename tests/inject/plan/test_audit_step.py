import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inject.plan.audit_step as module
from inject.plan.audit_step import audit, find_occurrences
from inject.stream.audit_report import AuditFailed, read_audit, write_audit
from inject.stream.exposures import CopyName
from tests.inject.streams import (
    ArraySource,
    naive_find,
    plan_for,
    random_source,
    spiked_examples,
    whole_texts,
)


@given(
    haystack=st.lists(st.integers(0, 2), max_size=200),
    needles=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), max_size=6),
    block=st.integers(1, 64),
)
@settings(max_examples=60, deadline=None)
def test_occurrences_equal_brute_force(haystack, needles, block):
    stream = ArraySource(np.array(haystack, dtype=np.int64))
    patterns = {str(index): np.array(needle) for index, needle in enumerate(needles)}
    original = module._BLOCK
    module._BLOCK = block
    try:
        occurrences = sorted(find_occurrences(stream, patterns))
    finally:
        module._BLOCK = original
    expected = sorted(
        (name, start)
        for name, needle in patterns.items()
        for start in naive_find(stream.tokens, needle)
    )
    assert occurrences == expected


@pytest.fixture
def planned():
    source = random_source(6000, seed=3)
    examples, tokens = spiked_examples(15, 15)
    tokens = {name: np.resize(ids, 24) for name, ids in tokens.items()}
    plan = plan_for(examples, tokens, source=source, budget=5000, seed=1)
    return source, examples, tokens, plan


def run(source, examples, tokens, plan, *, view=None, names=None, corpus=None):
    return audit(
        view or plan.view(source),
        corpus or source,
        source.doc_starts,
        tokens=tokens,
        names=names or plan.names(),
        starts=plan.view(source).text_starts(),
        texts=whole_texts(tokens),
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


def test_audit_counts_only_whole_texts_inside_variants():
    """One example is inserted as half its text, one as its text twice, one as another's text."""
    source = random_source(4000, seed=5)
    examples, tokens = spiked_examples(3, 1)
    tokens = {name: np.resize(ids, 30) for name, ids in tokens.items()}
    half, twice, foreign, withheld = (tokens[example.example_id] for example in examples)
    of = (("half", half[:15]), ("twice", np.concatenate([twice, twice])), ("foreign", twice))
    texts = {
        (example.example_id, variant): text
        for example, (variant, text) in zip(examples, of, strict=False)
    }

    def report_of(copies):
        stream, names, starts = source.tokens.copy(), [], []
        for number, index in enumerate(copies):
            names.append(CopyName(examples[index].example_id, "toy", number, of[index][0]))
            starts.append(300 * (number + 1))
            stream[starts[-1] : starts[-1] + len(of[index][1])] = of[index][1]
        return audit(
            ArraySource(stream), source, source.doc_starts, tokens=tokens, names=names,
            starts=np.array(starts), texts=texts,
            sides={example.example_id: example.side for example in examples},
        )  # fmt: skip

    assert report_of([0, 1, 1, 0]).passed
    # The third example's copies contain the second's text, which then occurs too often.
    report = report_of([1, 2])
    assert report.wrong_counts == (
        {"example_id": examples[1].example_id, "expected": 2, "found": 3},
    )


def test_deviation_from_the_plan_fails_and_is_named(planned, tmp_path):
    """A lost copy, an unplanned copy, and a non-member."""
    source, examples, tokens, plan = planned
    view, realised = plan.view(source), plan.realised()
    stream, lost = view.read(0, 5000), plan.names()[3]
    extra = next(name.example_id for name in plan.names() if name.example_id != lost.example_id)
    withheld = examples[-1].example_id
    stream[int(view.text_starts()[3]) + 5] += 1
    stream[4900:4924], stream[100:124] = tokens[extra], tokens[withheld]
    report = run(*planned, view=ArraySource(stream))
    assert not report.passed
    assert report.displaced == (lost._asdict(),)
    assert report.copies_found == report.copies_expected - 1
    assert {row["example_id"]: row["found"] - row["expected"] for row in report.wrong_counts} == {
        lost.example_id: -1,
        extra: 1,
    }
    assert report.nonmembers_found == ({"example_id": withheld, "position": 100},)
    message = str(AuditFailed(report, tmp_path))
    assert f"occurs {realised[extra] + 1} times, planned {realised[extra]}" in message
    assert withheld in message


@pytest.mark.parametrize("fault", ["displaced", "wrong_counts", "nonmembers_found"])
def test_single_faults_fail_the_audit(planned, fault):
    source, examples, tokens, plan = planned
    view = plan.view(source)
    stream, moved = view.read(0, 5000), plan.names()[3]
    start = int(view.text_starts()[3])
    if fault == "displaced":
        stream[start : start + 24] = 1
        stream[4900:4924] = tokens[moved.example_id]
    else:
        stream[4900:4924] = tokens[moved.example_id if fault == "wrong_counts" else "toy-29"]
    report = run(*planned, view=ArraySource(stream))
    assert not report.passed
    assert [name for name in FAULTS if getattr(report, name)] == [fault]


FAULTS = ("displaced", "wrong_counts", "nonmembers_found", "background_hits")


def test_background_example_fails_even_with_changed_edges(planned):
    source, examples, tokens, plan = planned
    text = tokens[examples[0].example_id].copy()
    text[0], text[-1] = 1, 2
    dirty = ArraySource(source.tokens.copy(), source.doc_starts)
    dirty.tokens[5500:5524] = text
    report = run(*planned, corpus=dirty)
    assert not report.passed
    hit = report.background_hits[0]
    assert hit["example_id"] == examples[0].example_id
    document = hit["document"]
    assert dirty.doc_starts[document] <= hit["position"] < [*dirty.doc_starts, 6000][document + 1]
    assert [name for name in FAULTS if getattr(report, name)] == ["background_hits"]


def test_audit_names_the_document_that_begins_with_an_example(planned):
    source, examples, tokens, plan = planned
    start = int(source.doc_starts[-1])
    dirty = ArraySource(np.append(source.tokens[:start], tokens["toy-29"]), source.doc_starts)
    # The edges are not searched, so the document is moved to the start of the search.
    dirty.doc_starts[-1] += 2
    hits = run(*planned, corpus=dirty).background_hits
    assert [hit["document"] for hit in hits] == [len(source.doc_starts) - 1]
