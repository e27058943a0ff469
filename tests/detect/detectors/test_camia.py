"""camia: each signal against a slow re-implementation, p-values by counting, orientation."""

import math

import numpy as np
import pytest

from detect.detectors.camia import (
    DETECTOR,
    FEW,
    CamiaParameters,
    approximate_entropy,
    in_bins,
    lempel_ziv,
    signals,
    slope,
)
from detect.evidence import Evidence, HeldOutRows
from detect.token_statistics import EMPTY_TEXT, unscored
from detect.views import TEXT
from tests.detect.evidence_samples import statistics_of


def rows(count, seed, scale=2.0, lengths=(15, 60)):
    draw = np.random.default_rng(seed)
    samples = []
    for _ in range(count):
        size = int(draw.integers(*lengths))
        ids = draw.integers(0, 40, size)
        samples.append(statistics_of(-draw.exponential(scale, size), ids=ids))
    return samples


def entropy_by_hand(values, m, r):
    """Pincus 1991, with two loops."""

    def phi(size):
        patterns = [values[i : i + size] for i in range(len(values) - size + 1)]
        total = 0.0
        for pattern in patterns:
            near = sum(
                max(abs(a - b) for a, b in zip(pattern, other, strict=True)) <= r
                for other in patterns
            )
            total += math.log(near / len(patterns))
        return total / len(patterns)

    return phi(m) - phi(m + 1)


def phrases_by_hand(symbols):
    """LZ78: each phrase is the shortest new one; a repeated last one does not count."""
    phrases, start = [], 0
    while start < len(symbols):
        stop = start + 1
        while stop < len(symbols) and symbols[start:stop] in phrases:
            stop += 1
        if symbols[start:stop] not in phrases:
            phrases.append(symbols[start:stop])
        start = stop
    return len(phrases)


def bins_by_hand(values, bins):
    """The authors' two steps: 100 edges from the least value to 0, then equal parts of these."""
    low = min(values)
    edges = [low - low * place / 99 for place in range(100)]
    steps = [sum(edge < value - 1e-12 for edge in edges) for value in values]
    first, last = min(steps), max(steps)
    ends = [first + (last - first) * (part + 1) / bins for part in range(bins)]
    return [sum(end < step - 1e-9 for end in ends) for step in steps]


@pytest.mark.parametrize("size", [12, 40, 130])
def test_shape_signals_match_slow_implementations(size):
    draw = np.random.default_rng(size)
    values = -draw.exponential(2, size)
    expected = entropy_by_hand(values.tolist(), 8, 0.8 * float(np.std(values)))
    assert approximate_entropy(values) == pytest.approx(abs(expected), abs=1e-9)
    fit = np.polyfit(np.arange(size), values, 1)[0]
    assert slope(values) == pytest.approx(fit, abs=1e-9)
    for bins in (3, 4, 5):
        symbols = in_bins(values, bins)
        assert list(symbols) == bins_by_hand(values.tolist(), bins)
        assert lempel_ziv(symbols) == phrases_by_hand(list(symbols)) / size


def test_likelihood_signals_follow_their_definitions():
    values = [-0.5, -1.0, -2.5, -4.0, -0.1]
    by_name = {
        signal.name: signal.value for signal in signals(statistics_of(values, ids=[1, 2, 2, 3, 1]))
    }
    mean, diversity = sum(values) / 5, 3 / 5
    assert by_name["mean-all"] == pytest.approx(mean)
    assert by_name["perplexity-all"] == pytest.approx(-math.exp(-mean))
    assert by_name["mean/diversity-all"] == pytest.approx(mean / diversity)
    assert by_name["perplexity/diversity-all"] == pytest.approx(-math.exp(-mean) / diversity)
    assert [by_name[f"share>={limit}"] for limit in (-1, -2, -3)] == [0.6, 0.6, 0.8]
    assert by_name["share>mean"] == 0.6
    # Means before: -.5, -.75, -1.333, -2.
    assert by_name["share>running"] == pytest.approx(1 / 4)


def test_last_token_changes_the_signals():
    """Pitfall: [0:-1] drops the last token."""
    values = [-1.0] * 20
    original = {s.name: s.value for s in signals(statistics_of(values))}
    other = {s.name: s.value for s in signals(statistics_of([*values[:-1], -9.0]))}
    assert all(original[name] != other[name] for name in ("mean-all", "share>=-1", "mean-200"))


@pytest.mark.parametrize("values", [[-1.0], [0.0], [-1.0] * 50, [0.0] * 30, [-1000.0] * 12])
def test_edge_cases_give_finite_signals(values):
    assert all(math.isfinite(signal.value) for signal in signals(statistics_of(values)))


def evidence(texts, held_out, *, datasets=None):
    return Evidence(
        texts=["a text"] * len(texts),
        statistics={TEXT: texts},
        datasets=datasets or ["one"] * len(texts),
        held_out=HeldOutRows(
            datasets=["one"] * len(held_out), texts=["b"] * len(held_out), statistics=held_out
        ),
    )


@pytest.mark.parametrize("signals_used", ["all", "likelihood"])
def test_the_score_is_minus_the_mean_p_value(signals_used):
    texts, held_out = rows(6, 1), rows(25, 2)
    [column] = DETECTOR.score(evidence(texts, held_out), [CamiaParameters(signals=signals_used)])
    pools = {}
    for sample in held_out:
        for signal in signals(sample):
            pools.setdefault(signal.name, []).append(signal.value)
    for score, text in zip(column.scores, texts, strict=True):
        values = []
        for signal in signals(text):
            if signals_used == "likelihood" and signal.shape:
                continue
            above = sum(other >= signal.value for other in pools[signal.name])
            values.append((1 + above) / (1 + len(pools[signal.name])))
        assert score.value == pytest.approx(-sum(values) / len(values))


def test_likelier_texts_score_higher_without_labels():
    """Pitfall: the code takes the orientation of signals from all labels, including test labels."""
    members, others, held_out = rows(30, 1, scale=0.8), rows(30, 2), rows(40, 3)
    scores = DETECTOR.score(evidence([*members, *others], held_out), [CamiaParameters()])[0].scores
    values = [score.value for score in scores]
    assert np.mean(values[:30]) > np.mean(values[30:]) + 0.1
    assert not any(type(need).__name__ == "Sides" for need in DETECTOR.needs)


def test_too_few_held_out_rows_of_a_dataset_give_no_score():
    texts = [*rows(2, 1), unscored(EMPTY_TEXT)]
    scores = DETECTOR.score(evidence(texts, rows(9, 2)), [CamiaParameters()])[0].scores
    assert [score.reason for score in scores] == [FEW, FEW, EMPTY_TEXT]
    other = evidence(texts, rows(20, 2), datasets=["one", "two", "one"])
    scores = DETECTOR.score(other, [CamiaParameters()])[0].scores
    assert [score.reason for score in scores] == [None, FEW, EMPTY_TEXT]
