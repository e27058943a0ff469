"""`gap_k`, and the windows of `min_k` and `min_k_plus_plus`."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.registry import get_detector
from tests.detect.evidence_samples import evidence_of, random_statistics, statistics_of


def score(name: str, statistics, **parameters):
    detector = get_detector(name).detector
    setting = detector.parameters.model_validate(parameters)
    (column,) = detector.score(evidence_of(statistics), [setting])
    return column.scores[0]


def naive(values: list[float], window: int, percent: int) -> float:
    """The mean of the smallest moving averages, reimplemented."""
    if len(values) >= window:
        averages = [
            math.fsum(values[start : start + window]) / window
            for start in range(len(values) - window + 1)
        ]
    else:
        averages = list(values)
    number = max(1, len(averages) * percent // 100)
    return math.fsum(sorted(averages)[:number]) / number


def token_values(name: str, rows) -> list[float]:
    result = []
    for value, mean, deviation, top in zip(
        rows.log_probability.tolist(),
        rows.mean_log_prob.tolist(),
        rows.std_log_prob.tolist(),
        rows.top_log_probability.tolist(),
        strict=True,
    ):
        scale = math.sqrt(max(deviation**2, 1e-6))
        result.append(
            {
                "min_k": value,
                "min_k_plus_plus": (value - mean) / scale,
                "gap_k": (value - top) / scale,
            }[name]
        )
    return result


@pytest.mark.parametrize("name", ["min_k", "min_k_plus_plus", "gap_k"])
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 10), st.sampled_from([5, 20, 100]))
def test_moving_averages_and_their_lowest_share_follow_the_definition(
    name, seed, count, window, percent
):
    rows = random_statistics(count, seed=seed)
    result = score(name, rows, window=window, k=f"{percent / 100:.2f}")
    expected = naive(token_values(name, rows), window, percent)
    assert result.value == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_certain_token_does_not_divide_by_zero():
    certain = statistics_of([0.0, -5.0], top=[0.0, 0.0], deviation=[0.0, 0.0])
    assert score("gap_k", certain, window=1, k="0.5").value == pytest.approx(-5.0 / 1e-3)
