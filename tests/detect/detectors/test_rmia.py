"""rmia against its definition, looped over every pair in float64."""

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detect.detectors.rmia import (
    DETECTOR,
    NO_POPULATION,
    NO_SHADOW,
    RmiaParameters,
    pairwise_score,
)
from detect.evidence import Evidence, HeldOutRows, ShadowModel
from detect.token_statistics import EMPTY_TEXT, unscored
from detect.views import TEXT
from tests.detect.evidence_samples import statistics_of

ROWS, POPULATION, MODELS = 9, 15, 6


def random_rows(draw, count, shift=0.0):
    return [statistics_of(-draw.exponential(2, draw.integers(1, 30)) + shift) for _ in range(count)]


def evidence(seed=0, *, dataset="one"):
    draw = np.random.default_rng(seed)
    inside = draw.random((MODELS, ROWS)) < 0.5
    inside[0], inside[1] = True, False
    return Evidence(
        texts=[f"text {row}" for row in range(ROWS)],
        statistics={TEXT: random_rows(draw, ROWS)},
        datasets=[dataset] * ROWS,
        shadows=[
            ShadowModel(statistics=random_rows(draw, ROWS), inside=inside[model].tolist())
            for model in range(MODELS)
        ],
        held_out=HeldOutRows(
            datasets=["one"] * POPULATION,
            texts=[f"held out {row}" for row in range(POPULATION)],
            statistics=random_rows(draw, POPULATION),
            shadows=[random_rows(draw, POPULATION) for _ in range(MODELS)],
        ),
    )


def probability(statistics):
    values = [float(value) for value in statistics.log_probability]
    return math.exp(math.fsum(values) / len(values))


def by_hand(inputs, row, *, variant, a, gamma):
    """The share of pairs, and the mean log ratio, one pair after the other."""
    own = probability(inputs.statistics[TEXT][row])
    inside = [probability(s.statistics[row]) for s in inputs.shadows if s.inside[row]]
    outside = [probability(s.statistics[row]) for s in inputs.shadows if not s.inside[row]]
    mean_out = sum(outside) / len(outside)
    if variant == "online":
        average = (sum(inside) / len(inside) + mean_out) / 2
    else:
        average = (1 + a) / 2 * mean_out + (1 - a) / 2
    above, logs = 0, []
    for place in range(POPULATION):
        z = probability(inputs.held_out.statistics[place])
        mean_z = sum(probability(shadow[place]) for shadow in inputs.held_out.shadows) / MODELS
        average_z = mean_z if variant == "online" else (1 + a) / 2 * mean_z + (1 - a) / 2
        ratio = (own / average) / (z / average_z)
        above += ratio > gamma
        logs.append(math.log(ratio))
    return above / POPULATION, sum(logs) / POPULATION


@pytest.mark.parametrize("variant", ["online", "offline"])
@pytest.mark.parametrize(("a", "gamma"), [("0.3", "1"), ("0", "2"), ("1", "0.5")])
def test_score_is_the_share_of_pairs_with_ties_broken_by_the_mean_log_ratio(variant, a, gamma):
    inputs = evidence()
    setting = RmiaParameters(variant=variant, a=Decimal(a), gamma=Decimal(gamma))
    [column] = DETECTOR.score(inputs, [setting])
    expected = [
        by_hand(inputs, row, variant=variant, a=float(a), gamma=float(gamma)) for row in range(ROWS)
    ]
    for score, (share, _) in zip(column.scores, expected, strict=True):
        assert abs(score.value - share) < 1 / (2 * POPULATION)
    values = [item.value for item in column.scores]
    assert np.argsort(values).tolist() == sorted(range(ROWS), key=lambda row: expected[row])


@given(
    own=st.lists(st.floats(1e-6, 1), min_size=2, max_size=8),
    population=st.lists(st.floats(1e-6, 1), min_size=1, max_size=12),
    gamma=st.sampled_from([0.5, 1.0, 2.0]),
)
@settings(max_examples=40)
def test_breaking_ties_keeps_the_order_of_different_shares(own, population, gamma):
    others = np.array(population)
    for first in own:
        for other in own:
            shares = [np.mean(x / others > gamma) for x in (first, other)]
            scores = [pairwise_score(x, others, gamma) for x in (first, other)]
            if shares[0] > shares[1]:
                assert scores[0] > scores[1]


def test_membership_comes_from_shadow_labels():
    """Pitfall: the larger half of sorted signals taken for one side; zeros averaged in."""
    inputs = evidence()
    turned = [
        ShadowModel(statistics=item.statistics, inside=[not seen for seen in item.inside])
        for item in inputs.shadows
    ]
    offline = RmiaParameters(variant="offline")
    other = replace(inputs, shadows=turned)
    before, after = (DETECTOR.score(item, [offline])[0].scores for item in (inputs, other))
    assert [item.value for item in before] != [item.value for item in after]


def test_missing_score_has_a_reason():
    inputs = evidence(dataset="another")
    assert DETECTOR.score(inputs, [RmiaParameters()])[0].scores[0].reason == NO_POPULATION
    inputs = evidence()
    alone = replace(
        inputs,
        statistics={TEXT: [unscored(EMPTY_TEXT), *inputs.statistics[TEXT][1:]]},
        shadows=[
            ShadowModel(statistics=shadow.statistics, inside=[True, True, *shadow.inside[2:]])
            for shadow in inputs.shadows
        ],
    )
    scores = DETECTOR.score(alone, [RmiaParameters()])[0].scores
    assert [shadow.reason for shadow in scores[:3]] == [EMPTY_TEXT, NO_SHADOW, None]
