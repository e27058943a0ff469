"""`gap_k`, and the windows of `min_k` and `min_k_plus_plus`."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.detector_settings import parse_detectors, with_grids
from detect.registry import get_detector
from tests.detect.evidence_samples import evidence_of, random_statistics, statistics_of


def score(name: str, statistics, **parameters):
    detector = get_detector(name).detector
    setting = detector.parameters.model_validate(parameters)
    (column,) = detector.score(evidence_of(statistics), [setting])
    return column.scores[0]


def naive(values: list[float], window: int, percent: int) -> float:
    """The mean of the smallest moving averages, written down once more."""
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
        rows.mean.tolist(),
        rows.deviation.tolist(),
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
    found = score(name, rows, window=window, k=f"{percent / 100:.2f}")
    expected = naive(token_values(name, rows), window, percent)
    assert found.value == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_the_gap_is_0_where_the_text_is_the_models_own_choice_and_negative_elsewhere():
    own = statistics_of([-0.1, -3.0, -2.0])
    assert score("gap_k", own).value == 0.0
    other = statistics_of([-0.1, -3.0, -2.0], top=[-0.1, -1.0, -1.5], deviation=[1.0, 2.0, 0.5])
    assert score("gap_k", other, window=1, k="0.4").value == pytest.approx(-1.0)
    assert score("gap_k", other, window=3).value == pytest.approx(-2 / 3)


def test_a_certain_token_divides_by_no_zero():
    certain = statistics_of([0.0, -5.0], top=[0.0, 0.0], deviation=[0.0, 0.0])
    assert score("gap_k", certain, window=1, k="0.5").value == pytest.approx(-5.0 / 1e-3)


def test_a_text_shorter_than_the_window_is_not_smoothed():
    rows = random_statistics(4)
    for name in ("min_k", "min_k_plus_plus", "gap_k"):
        assert score(name, rows, window=5) == score(name, rows, window=1)
        assert score(name, rows, window=4) != score(name, rows, window=1)


def test_a_window_of_1_keeps_every_setting_text_and_every_bit():
    for name in ("min_k", "min_k_plus_plus"):
        (plain,) = parse_detectors(name)
        assert plain.text == "k=0.2"
        assert {one.text for one in with_grids([plain])} == {
            f"k={(twentieth / 20):.2f}".rstrip("0").rstrip(".") for twentieth in range(1, 21)
        }
        (wide,) = parse_detectors(f"{name}:window=3")
        assert wide.text == "k=0.2:window=3"
    rows = random_statistics(77)
    before = np.cumsum(np.sort(rows.log_probability).astype(np.float64))[14] / 15
    assert score("min_k", rows).value == before


def test_the_papers_defaults_and_grid():
    (default,) = parse_detectors("gap_k")
    assert default.text == "k=0.2:window=3"
    assert len(with_grids([default])) == 200


def test_the_last_token_and_both_ends_count():
    first = statistics_of([-9.0] + [-1.0] * 9)
    last = statistics_of([-1.0] * 9 + [-9.0])
    for rows in (first, last):
        assert score("min_k", rows, window=2, k="0.1").value == -5.0
