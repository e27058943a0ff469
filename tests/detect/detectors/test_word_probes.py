"""info_probe and ts_slot: their counts, and a model that has memorised its texts."""

import math

import pytest

from detect.evidence import Evidence
from detect.generation.guesses import (
    GuessedText,
)
from detect.registry import get_detector


def given_guesses(name, *rows, texts=None, **parameters):
    """Score invented guesses; return the column."""
    detector = get_detector(name).detector
    setting = detector.parameters.model_validate(parameters)
    (need,) = detector.needs_with(setting)
    evidence = Evidence(
        texts=texts or ["A text."] * len(rows), statistics={}, guesses={need.request: rows}
    )
    (column,) = detector.score(evidence, [setting])
    return column


ROWS = (
    GuessedText(("Arthur", "Ford", "Zaphod"), ("Arthur", "Output: ford", "Trillian"), 0, 30, 6),
    GuessedText(("Arthur",), ("<word>Arthur</word>",), 2, 10, 2),
    GuessedText(("Arthur",), ("Ford",), 0, 10, 2),
    GuessedText((), reason="no word surprises the reference model enough"),
    GuessedText((), filtered=3),
)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("number", [2, 1, 0, 0, 0]),
        ("share", [2 / 3, 1, 0, None, None]),
        # Two or more: one may be a spurious match (appendix A).
        ("decision", [1, 0, 0, 0, 0]),
    ],
)
def test_reconstructions_are_counted(measure, expected):
    column = given_guesses("info_probe", *ROWS, measure=measure)
    for score, value in zip(column.scores, expected, strict=True):
        if value is None:
            assert math.isnan(score.value)
            assert score.reason
        else:
            assert score.value == pytest.approx(value)
    assert column.notes == (
        "3 of 5 masked parts were put back exactly (60.0%); 5 more were left to the knowledge "
        "filter; 50 tokens in, 10 out.",
    )


def test_an_empty_text_has_no_score():
    column = given_guesses("info_probe", GuessedText((), reason="empty text"), texts=[" "])
    assert column.scores[0].reason == "empty text"


def test_slots_are_compared_exactly_or_by_rouge_l():
    rows = (
        GuessedText(("the red planet",), ("The red planet.",)),
        GuessedText(("the red planet",), ("the big red moon",)),
        GuessedText((), reason="it has no question"),
    )
    exact = given_guesses("ts_slot", *rows, slot="option").scores
    assert [score.value for score in exact[:2]] == [1.0, 0.0]
    assert exact[2].reason == "it has no question"
    rouge = given_guesses("ts_slot", *rows, slot="option", measure="rouge_l").scores
    # "the red" of three words and of four: 2 · 2 / (3 + 4).
    assert [score.value for score in rouge[:2]] == pytest.approx([1.0, 4 / 7])
