"""Detectors that compare with a reference model token by token: `wbc` and `ez_mia`."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.detector import Score
from detect.detector_settings import parse_detectors
from detect.detectors.wbc import OTHER_LENGTH, OTHER_TOKENS, WIDTHS
from detect.registry import get_detector
from detect.scoring import score_rows
from detect.token_statistics import EMPTY_TEXT, ONE_TOKEN, unscored
from tests.detect.evidence_samples import evidence_of, random_statistics, statistics_of

# Multiples of 1/64 add up exactly, so a sum is 0 if and only if the oracle's is.
steps = st.lists(st.integers(-640, 0).map(lambda n: n / 64), min_size=1, max_size=70)
pairs = steps.flatmap(
    lambda own: st.tuples(
        st.just(own), st.lists(st.sampled_from(own), min_size=len(own), max_size=len(own))
    )
)


def scores(name: str, targets, references, **parameters) -> list[Score]:
    detector = get_detector(name).detector
    setting = detector.parameters.model_validate(parameters)
    (column,) = detector.score(evidence_of(*targets, reference=references), [setting])
    return column.scores


def value(name: str, target, reference, **parameters) -> float:
    (score,) = scores(name, [target], [reference], **parameters)
    return score.value


def naive_wbc(target: list[float], reference: list[float]) -> float:
    difference = [a - b for a, b in zip(target, reference, strict=True)]
    shares = []
    for width in (2, 3, 4, 6, 9, 13, 18, 25, 32, 40):
        width = min(width, len(difference))
        positive = [
            math.fsum(difference[start : start + width]) > 0
            for start in range(len(difference) - width + 1)
        ]
        shares.append(sum(positive) / len(positive))
    return sum(shares) / 10


@given(pairs)
def test_wbc_follows_its_code(pair):
    target, reference = pair
    result = value("wbc", statistics_of(target), statistics_of(reference))
    assert result == pytest.approx(naive_wbc(target, reference), abs=1e-12)


def test_wbc_weights_each_width_equally():
    # A port counts the windows of all widths together; here that would give another number.
    target = statistics_of([0.0] * 3 + [-1.0] * 41)
    reference = statistics_of([-1.0] * 3 + [0.0] * 41)
    alone = [min(5 - math.ceil((w + 1) / 2), 3) for w in (2, 3, 4)]
    assert alone == [3, 3, 2]
    counts = {w: sum(3 - s > (w - (3 - s)) for s in range(3)) / (44 - w + 1) for w in WIDTHS}
    assert value("wbc", target, reference) == pytest.approx(sum(counts.values()) / 10)


def naive_ez(target, reference, *, empty: str, skip_first: bool) -> float:
    gained, lost, errors = 0.0, 0.0, 0
    for position in range(1 if skip_first else 0, len(target)):
        if target.top_id[position] != target.ids[position]:
            errors += 1
            delta = float(target.log_probability[position]) - float(
                reference.log_probability[position]
            )
            gained, lost = gained + max(delta, 0.0), lost + max(-delta, 0.0)
    if empty == "zero" and (errors < 2 or lost == 0):
        return 0.0
    if gained + lost == 0:
        return 1.0 if empty == "member" else math.nan
    return gained / (gained + lost)


@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.sampled_from(["member", "zero", "nan"]),
    st.booleans(),
)
def test_ez_mia_follows_the_paper_and_its_code(seed, count, empty, skip_first):
    target = random_statistics(count, seed=seed)
    reference = replace(random_statistics(count, seed=seed + 1), ids=target.ids)
    options = {"empty": empty, "skip_first": skip_first}
    result = value("ez_mia", target, reference, **options)
    assert result == pytest.approx(naive_ez(target, reference, **options), nan_ok=True)


@pytest.mark.parametrize("name", ["wbc", "ez_mia"])
def test_reference_with_other_tokens_scores_no_row(name):
    """A published port silently trims both to the shorter one."""
    rows = [random_statistics(size, seed=size) for size in (9, 5, 1)]
    other_ids = [*rows[:2], replace(rows[2], ids=rows[2].ids + 1)]
    other_places = [*rows[:2], replace(rows[2], offsets=rows[2].offsets + 1)]
    for references in (other_ids, other_places):
        evidence = evidence_of(*rows, reference=references)
        table, notes = score_rows(["a", "b", "c"], evidence, parse_detectors(name))
        assert {row["reason"] for row in table.to_pylist()} == {OTHER_TOKENS}
        assert all(math.isnan(row["score"]) for row in table.to_pylist())
        assert OTHER_TOKENS in notes[0]
    nowhere = [replace(row, offsets=np.full_like(row.offsets, -1)) for row in rows]
    assert not math.isnan(scores(name, rows, nowhere)[2].value)


@pytest.mark.parametrize("name", ["wbc", "ez_mia"])
def test_text_with_fewer_tokens_in_one_model_has_no_score(name):
    rows = [random_statistics(9, seed=1), random_statistics(4, seed=2)]
    shorter = replace(statistics_of([-1.0] * 5), ids=rows[0].ids[:5], offsets=rows[0].offsets[:5])
    results = scores(name, rows, [shorter, rows[1]])
    assert results[0].reason == OTHER_LENGTH
    assert not math.isnan(results[1].value)


@pytest.mark.parametrize("name", ["wbc", "ez_mia"])
def test_unscorable_texts_name_the_model_concerned(name):
    row, empty = random_statistics(3), unscored(EMPTY_TEXT)
    results = scores(name, [row, empty], [unscored(ONE_TOKEN), row])
    assert [score.reason for score in results] == [f"reference model: {ONE_TOKEN}", EMPTY_TEXT]
    assert all(math.isnan(score.value) for score in results)
