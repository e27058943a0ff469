"""The ablations of Zhang et al. 2024 (DC-PDD), section 5.2, against loops; the default unmoved."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.detector_settings import parse_detectors, with_grids
from detect.detectors.dc_pdd import GRID
from detect.registry import get_detector
from tests.detect.evidence_samples import (
    evidence_of,
    random_statistics,
    small_frequency,
    statistics_of,
)


def scores(rows, table, *asked):
    detector = get_detector("dc_pdd").detector
    settings = [detector.parameters.model_validate(one) for one in asked]
    columns = detector.score(evidence_of(rows, frequency=table), settings)
    return [column.scores[0].value for column in columns]


def naive(rows, counts, a, *, capped, first_only):
    seen, found = set(), []
    for token, value in zip(rows.ids.tolist(), rows.log_probability.tolist(), strict=True):
        if first_only and token in seen:
            continue
        seen.add(token)
        term = -math.exp(value) * math.log((counts[token] + 1) / (counts.sum() + len(counts)))
        found.append(min(term, a) if capped else term)
    return sum(found) / len(found)


@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([0.001, 0.01, 1.0]))
def test_each_step_adds_one_strategy(seed, count, a):
    rows, table = random_statistics(count, seed=seed), small_frequency()
    variants = [{"a": a, "variant": name} for name in ("cld", "lup", "sfo")]
    cld, lup, sfo = scores(rows, table, *variants)
    assert cld == pytest.approx(naive(rows, table.counts, a, capped=False, first_only=False))
    assert lup == pytest.approx(naive(rows, table.counts, a, capped=True, first_only=False))
    assert sfo == pytest.approx(naive(rows, table.counts, a, capped=True, first_only=True))


def test_the_default_is_what_it_was_to_the_last_bit():
    rows, table = random_statistics(50, seed=3), small_frequency()
    _, first = np.unique(rows.ids, return_index=True)
    terms = -np.exp(rows.log_probability[first].astype(np.float64)) * table.log_frequency(
        rows.ids[first]
    )
    assert scores(rows, table, {}) == [float(np.minimum(terms, 0.01).mean())]


def test_settings_and_grid_are_written_as_they_were():
    texts = [one.text for one in with_grids(parse_detectors("dc_pdd"))]
    assert texts == ["a=0.01", "a=0.001", "a=0.1", "a=1.0", "a=10.0"]
    assert len(GRID) == 5
    assert [one.text for one in parse_detectors("dc_pdd:variant=cld,dc_pdd:variant=sfo")] == [
        "a=0.01:variant=cld",
        "a=0.01",
    ]


def test_a_text_of_one_token_said_again_shows_what_first_occurrences_do():
    rows, table = statistics_of([-0.1, -9.0, -9.0], ids=[5, 5, 5]), small_frequency()
    lup, sfo = scores(rows, table, {"a": 9.0, "variant": "lup"}, {"a": 9.0})
    assert sfo > 2 * lup
