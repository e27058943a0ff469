"""PD and PAC against loops, their sign, and swaps that depend only on the text."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detect.detector_settings import parse_detectors
from detect.evidence import Evidence
from detect.scoring import score_rows
from detect.views import SWAPPED, view_text
from tests.conftest import make_texts
from tests.detect.evidence_samples import random_statistics, statistics_of


def scores(evidence, name):
    names = [str(row) for row in range(len(evidence.texts))]
    return score_rows(names, evidence, parse_detectors(name))[0].to_pylist()


def naive_distance(values):
    ordered = sorted(map(float, values))
    low = max(1, len(ordered) * 30 // 100)
    high = max(1, len(ordered) * 5 // 100)
    return sum(ordered[len(ordered) - high :]) / high - sum(ordered[:low]) / low


@given(st.lists(st.floats(-30, 0, width=32), min_size=1, max_size=90))
def test_pd_is_the_negative_distance_between_the_extremes(values):
    """The minus is the paper's: members are nearer to the middle."""
    (row,) = scores(Evidence(texts=["x"], statistics={"text": [statistics_of(values)]}), "pd")
    assert row["score"] == pytest.approx(-naive_distance(values), rel=1e-9, abs=1e-9)


def evidence_of(texts, seed=0):
    views = ("text", *SWAPPED)
    statistics = {
        view: [
            random_statistics(30 + row, seed=seed + 10 * row + place) for row in range(len(texts))
        ]
        for place, view in enumerate(views)
    }
    return Evidence(texts=texts, statistics=statistics)


def test_pac_is_calibrated_by_the_mean_of_five_swaps():
    evidence = evidence_of(["two words", "a b c"])
    for row, result in enumerate(scores(evidence, "pac")):
        distances = {
            view: naive_distance(rows[row].log_probability)
            for view, rows in evidence.statistics.items()
        }
        text = distances.pop("text")
        assert result["score"] == pytest.approx(-(text - sum(distances.values()) / 5), rel=1e-6)


def test_pac_of_one_word_has_a_reason():
    (row,) = scores(evidence_of(["word"]), "pac")
    assert math.isnan(row["score"])
    assert "fewer than two words" in row["reason"]


@given(st.text(max_size=60), st.sampled_from(SWAPPED))
def test_swaps_move_only_words(text, view):
    swapped = view_text(view, text)
    assert Counter(swapped.split()) == Counter(text.split())
    assert len(swapped) == len(text)
    assert swapped == view_text(view, text)


def moved(text, view):
    return sum(a != b for a, b in zip(text.split(), view_text(view, text).split(), strict=True))


def test_ten_words_get_three_swaps_and_any_text_gets_one():
    for count in range(2, 7):
        text = " ".join(map(str, range(count)))
        assert {moved(text, view) for view in SWAPPED} == {2}
    text = " ".join(map(str, range(100)))
    # Thirty swaps of two words each, some of them moved twice.
    assert 40 <= moved(text, "swapped-2") <= 60
    assert len({view_text(view, text) for view in SWAPPED}) == 5


def test_swaps_do_not_depend_on_other_texts():
    """A known pitfall of public code: one global seed, so that scores depend on the order."""
    texts = make_texts(5, words=12)
    forwards = {text: view_text("swapped-1", text) for text in texts}
    backwards = {text: view_text("swapped-1", text) for text in texts[::-1]}
    assert forwards == backwards
