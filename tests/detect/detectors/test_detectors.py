"""Each detector against the naive formula of its paper, and against known public mistakes."""

import math
import zlib
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.detector_settings import parse_detectors, with_grids
from detect.detectors.min_k import MinKParameters, selected_count
from detect.detectors.surp import strictly_below
from detect.evidence import Evidence
from detect.registry import get_detector
from detect.token_frequency import TokenFrequency
from detect.token_statistics import EMPTY_TEXT, unscored
from tests.detect.evidence_samples import (
    evidence_of,
    random_statistics,
    small_frequency,
    statistics_of,
)


def score(name: str, evidence: Evidence, **parameters):
    """The score of the first row."""
    detector = get_detector(name).detector
    (column,) = detector.score(evidence, [detector.parameters.model_validate(parameters)])
    return column.scores[0]


# Exact in float32, the precision of the detectors' input.
log_probabilities = st.lists(st.floats(-30, -0.0009765625, width=32), min_size=1, max_size=60)


@given(log_probabilities)
def test_loss_is_the_mean(values):
    assert score("loss", evidence_of(statistics_of(values))).value == pytest.approx(
        math.fsum(values) / len(values), rel=1e-6
    )


@given(log_probabilities, st.text(min_size=1, max_size=80))
def test_zlib_divides_by_compressed_bytes(values, text):
    encoded = text.encode("utf-8", "ignore")
    text = encoded.decode("utf-8")
    expected = np.mean(values) / len(zlib.compress(text.encode(), 6))
    result = score("zlib", evidence_of(statistics_of(values), texts=[text]))
    assert result.value == pytest.approx(expected, rel=1e-6)


def test_lowercase_is_larger_for_a_text_with_learned_case():
    cased, lowered = statistics_of([-1.0, -1.0]), statistics_of([-3.0, -3.0, -3.0])
    evidence = Evidence(
        texts=["The River", "no capitals"],
        statistics={"text": [cased, cased], "lowercase": [lowered, cased]},
    )
    detector = get_detector("lowercase").detector
    (column,) = detector.score(evidence, [detector.parameters()])
    assert [result.value for result in column.scores] == [3.0, 1.0]
    assert "1 of 2 texts" in column.notes[0]


def test_reference_takes_the_reference_models_own_tokens():
    # Another number of tokens: the two means are separate, never token by token.
    target, other = statistics_of([-1.0, -2.0]), statistics_of([-2.0, -3.0, -4.0, -7.0])
    evidence = evidence_of(target, reference=[other])
    assert score("reference", evidence).value == -1.5 - -4.0
    assert score("reference", evidence, variant="ratio").value == -4.0 / -1.5


def test_min_k_takes_the_least_likely_tokens_including_the_last():
    result = score("min_k", evidence_of(statistics_of([-1.0, -2.0, -3.0, -4.0, -9.0])), k="0.2")
    assert result.value == -9.0


@given(st.integers(0, 2**32), st.integers(1, 50), st.integers(1, 100))
def test_min_k_and_min_k_plus_plus_are_means_of_the_smallest(seed, count, percent):
    rows = random_statistics(count, seed=seed)
    # A variance that vanishes counts as 1e-6.
    rows.std_log_prob[0] = 0.0
    values, mean, deviation = (
        np.asarray(column, np.float64)
        for column in (rows.log_probability, rows.mean_log_prob, rows.std_log_prob)
    )
    z = (values - mean) / np.sqrt(np.maximum(deviation**2, 1e-6))
    number = max(1, count * percent // 100)
    for name, given_values in (("min_k", values), ("min_k_plus_plus", z)):
        result = score(name, evidence_of(rows), k=f"{percent / 100:.2f}").value
        assert result == pytest.approx(np.sort(given_values)[:number].mean(), rel=1e-5), name


def test_floor_of_n_times_k_is_exact():
    assert selected_count(100, MinKParameters(k=Decimal("0.29"))) == 29
    assert selected_count(100, MinKParameters(k=Decimal("0.57"))) == 57
    assert all(
        selected_count(n, MinKParameters(k=Decimal(percent) / 100)) == max(1, n * percent // 100)
        for n in range(1, 300)
        for percent in range(1, 101)
    )


def test_fewer_than_one_over_k_tokens_keep_one_or_have_a_reason():
    evidence = evidence_of(statistics_of([-1.0, -5.0, -2.0]))
    assert score("min_k", evidence, k="0.2").value == -5.0
    refused = score("min_k", evidence, k="0.2", k_rule="floor")
    assert math.isnan(refused.value)
    assert "fewer than 1/k" in refused.reason


def test_min_k_plus_plus_uses_weighted_expectations():
    probability = np.array([0.7, 0.2, 0.1])
    log_p = np.log(probability)
    mean = float(probability @ log_p)
    deviation = float(np.sqrt(probability @ log_p**2 - mean**2))
    rows = statistics_of([log_p[1]], entropy=[-mean], deviation=[deviation])
    result = score("min_k_plus_plus", evidence_of(rows)).value
    assert result == pytest.approx((log_p[1] - mean) / deviation, rel=1e-5)
    assert abs(result - (log_p[1] - log_p.mean()) / log_p.std()) > 0.5


def naive_surp(rows, entropy: float, k: int, selection: str) -> float:
    values, uncertainty = rows.log_probability.astype(np.float64), rows.entropy
    if selection == "percentile":
        chosen = values < np.percentile(values, k)
    else:
        chosen = np.isin(
            np.arange(len(values)), np.argsort(values, kind="stable")[: len(values) * k // 100]
        )
    chosen &= uncertainty < entropy
    return float(values[chosen].mean()) if chosen.any() else math.nan


@given(
    st.integers(0, 2**32),
    st.integers(1, 60),
    st.sampled_from([0.5, 2.0, 4.5]),
    st.sampled_from([10, 40, 70, 100]),
    st.sampled_from(["percentile", "count"]),
)
def test_surp_follows_the_paper(seed, count, entropy, k, selection):
    rows = random_statistics(count, seed=seed)
    result = score("surp", evidence_of(rows), entropy=entropy, k=k, selection=selection)
    expected = naive_surp(rows, entropy, k, selection)
    assert result.value == pytest.approx(expected, rel=1e-6, nan_ok=True)
    assert (result.reason is None) == (not math.isnan(expected))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.integers(1, 100))
def test_the_percentile_is_interpolated_and_strict_even_with_ties(values, percent):
    from fractions import Fraction

    ordered = np.sort(np.array(values, np.float64))
    position = Fraction((len(values) - 1) * percent, 100)
    low = math.floor(position)
    high = min(low + 1, len(values) - 1)
    threshold = int(ordered[low]) + (position - low) * int(ordered[high] - ordered[low])
    assert strictly_below(ordered, Fraction(percent)) == sum(v < threshold for v in ordered)


def test_surp_without_selected_tokens_gives_a_reason_or_min_k():
    rows = statistics_of([-1.0, -2.0, -3.0, -4.0, -5.0], entropy=[9.0] * 5)
    refused = score("surp", evidence_of(rows))
    assert math.isnan(refused.value)
    assert "empty selection" in refused.reason
    assert score("surp", evidence_of(rows), empty="min_k").value == -4.5


def naive_dc_pdd(rows, counts, a: float, *, capped: bool, first_only: bool) -> float:
    seen, terms = set(), []
    for token, value in zip(rows.ids.tolist(), rows.log_probability.tolist(), strict=True):
        if first_only and token in seen:
            continue
        seen.add(token)
        term = -math.exp(value) * math.log((counts[token] + 1) / (counts.sum() + len(counts)))
        terms.append(min(term, a) if capped else term)
    return sum(terms) / len(terms)


@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([0.001, 0.01, 1.0, 10.0]))
def test_dc_pdd_and_its_ablations_follow_the_paper(seed, count, a):
    """Zhang et al. 2024, section 5.2: each step adds one strategy; `sfo` is the default."""
    rows, table = random_statistics(count, seed=seed), small_frequency()
    evidence = evidence_of(rows, frequency=table)
    for variant, capped, first_only in (
        ({"variant": "cld"}, False, False),
        ({"variant": "lup"}, True, False),
        ({}, True, True),
    ):
        expected = naive_dc_pdd(rows, table.counts, a, capped=capped, first_only=first_only)
        assert score("dc_pdd", evidence, a=a, **variant).value == pytest.approx(expected, rel=1e-6)


def test_dc_pdd_does_not_rank_by_raw_counts():
    # The rarer token must weigh more; with raw counts for f, −p·log f has the other sign.
    table = TokenFrequency(counts=np.array([100_000, 3]))
    common = score("dc_pdd", evidence_of(statistics_of([-1.0], ids=[0]), frequency=table), a=10.0)
    rare = score("dc_pdd", evidence_of(statistics_of([-1.0], ids=[1]), frequency=table), a=10.0)
    assert rare.value > common.value > 0


def test_dc_pdd_rejects_ids_outside_the_table():
    evidence = evidence_of(statistics_of([-1.0], ids=[99]), frequency=small_frequency(8))
    assert "beyond" in score("dc_pdd", evidence).reason


LIKELIHOOD = (
    "loss",
    "zlib",
    "lowercase",
    "reference",
    "min_k",
    "min_k_plus_plus",
    "surp",
    "dc_pdd",
    "wbc",
    "ez_mia",
    "gap_k",
    "acmia",
)


@pytest.mark.parametrize("name", LIKELIHOOD)
def test_unscorable_text_has_a_reason_and_no_score(name):
    empty = unscored(EMPTY_TEXT)
    evidence = evidence_of(empty, reference=[empty], frequency=small_frequency(), texts=[""])
    result = score(name, evidence)
    assert math.isnan(result.value)
    assert result.reason == EMPTY_TEXT


@pytest.mark.parametrize("name", LIKELIHOOD)
def test_grid_matches_its_settings_scored_separately(name):
    rows = [random_statistics(size, seed=size) for size in (1, 2, 7, 40)]
    others = [replace(random_statistics(len(row), seed=99), ids=row.ids) for row in rows]
    evidence = evidence_of(*rows, reference=others, frequency=small_frequency())
    settings = with_grids([*parse_detectors(name)])
    detector = get_detector(name).detector
    together = detector.score(evidence, [setting.parameters for setting in settings])
    for setting, column in zip(settings, together, strict=True):
        (alone,) = detector.score(evidence, [setting.parameters])
        np.testing.assert_array_equal(
            [result.value for result in column.scores], [result.value for result in alone.scores]
        )
