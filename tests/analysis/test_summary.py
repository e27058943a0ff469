"""The first sentences: words chosen by the numbers, for many kinds of runs."""

import re
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.findings import Findings
from analysis.intervals.estimate import Estimate
from analysis.summary import (
    choice_sentence,
    find_headline,
    headline_sentence,
    seeds_sentence,
    summary_sentences,
)
from tests.analysis.made_findings import Number, number, one_arm

LR = ("train.lr", "0.001")


def cell(value: float, low: float, high: float, **more) -> Number:
    return number(value, low, high, **{"tune": value, **more})


def arm(doses: dict[str, Number], *axes: tuple[str, str], detector: str = "loss") -> Findings:
    """Return an arm by numbers of copies; `all` is over all members."""
    return one_arm({(detector, label): dose for label, dose in doses.items()}, *axes)


HIGH, MIDDLE, LOW = cell(0.99, 0.97, 1.0), cell(0.71, 0.66, 0.79), cell(0.52, 0.45, 0.6)
WIDE, BELOW = cell(0.9, 0.62, 0.99), cell(0.3, 0.2, 0.4)


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        (
            [arm({"all": HIGH, "1": MIDDLE, "8": HIGH}, LR)],
            "A text copied 8 times at learning rate 0.001 is almost always distinguished from "
            "unseen text (AUC 0.99 [0.97, 1.00]); copied once, much less often "
            "(0.71 [0.66, 0.79]).",
        ),
        (
            [arm({"all": HIGH, "1": LOW, "5-8": cell(0.9, 0.81, 0.95)})],
            "A text copied 5 to 8 times is usually distinguished from unseen text "
            "(AUC 0.90 [0.81, 0.95]); copied once, it shows no detectable difference "
            "(0.52 [0.45, 0.60]).",
        ),
        (
            [arm({"all": LOW, "1": LOW, "2": cell(0.55, 0.48, 0.64)})],
            "A text copied twice shows no detectable difference from unseen text "
            "(AUC 0.55 [0.48, 0.64]); copied once, neither does it (0.52 [0.45, 0.60]).",
        ),
        (
            [arm({"all": WIDE, "1": cell(0.75, 0.7, 0.8), "4": WIDE})],
            "A text copied 4 times is weakly distinguishable from unseen "
            "text (AUC 0.90 [0.62, 0.99]); copied once, as far as these data show, no less "
            "often (0.75 [0.70, 0.80]).",
        ),
        (
            [arm({"all": MIDDLE, "1": HIGH, "4": cell(0.75, 0.7, 0.8)})],
            "A text copied 4 times is often distinguished from unseen text "
            "(AUC 0.75 [0.70, 0.80]); copied once, more often (0.99 [0.97, 1.00]).",
        ),
        (
            [arm({"all": MIDDLE, "1": BELOW, "4": MIDDLE})],
            "A text copied 4 times is often distinguished from unseen text "
            "(AUC 0.71 [0.66, 0.79]); copied once, it ranks below (0.30 [0.20, 0.40]).",
        ),
        (
            [arm({"all": BELOW, "4": BELOW})],
            "A text copied 4 times ranks below unseen text (AUC 0.30 [0.20, 0.40]).",
        ),
        (
            [arm({"all": HIGH})],
            "A spiked text is almost always distinguished from unseen text "
            "(AUC 0.99 [0.97, 1.00]).",
        ),
        # Doses with few members or a doubtful interval are not mentioned.
        (
            [
                arm(
                    {
                        "all": HIGH,
                        "1": MIDDLE,
                        "4": HIGH,
                        "8": HIGH | {"n_members": 9},
                        "9": HIGH | {"interval": "this model; not to be trusted: 9 groups"},
                    }
                )
            ],
            "A text copied 4 times is almost always distinguished from unseen text "
            "(AUC 0.99 [0.97, 1.00]); copied once, much less often (0.71 [0.66, 0.79]).",
        ),
        # Arms of one dose each: another arm of the same settings has the fewest copies.
        (
            [
                arm({"all": HIGH, "8": HIGH}, LR, ("copies", "fixed=8")),
                arm({"all": MIDDLE, "1": MIDDLE}, LR, ("copies", "fixed=1")),
                arm({"all": LOW, "2": LOW}, ("train.lr", "0.1"), ("copies", "fixed=2")),
            ],
            "A text copied 8 times at learning rate 0.001 is almost always distinguished from "
            "unseen text (AUC 0.99 [0.97, 1.00]); copied once, much less often "
            "(0.71 [0.66, 0.79]).",
        ),
        (
            [arm({"all": HIGH}, LR, ("train.epochs", "2"))],
            "A spiked text (learning rate 0.001, 2 epochs) is almost always distinguished from "
            "unseen text (AUC 0.99 [0.97, 1.00]).",
        ),
    ],
)
def test_headline_words_depend_on_the_numbers(tables, sentence):
    best = find_headline(tables)
    assert headline_sentence(tables, best) == sentence


def test_headline_uses_the_name_of_an_arm():
    tables = [arm({"all": HIGH}, LR, ("train.epochs", "2"))]
    best = find_headline(tables, lambda cohort: "short" if dict(cohort.axes)[LR[0]] else "")
    assert headline_sentence(tables, best).startswith("A spiked text (short) is almost always")


ends = st.floats(0.0, 1.0).map(lambda x: round(x, 2))


@given(*([st.tuples(ends, ends, ends).map(sorted)] * 2))
def test_sentences_claim_only_what_their_intervals_support(few, many):
    cells = {"1": cell(few[1], few[0], few[2]), "8": cell(many[1], many[0], many[2])}
    tables = [arm({"all": cells["8"], **cells})]
    sentence = headline_sentence(tables, find_headline(tables))
    first, second = sentence.split("; ")
    low, high = cells["8"]["low"], cells["8"]["high"]
    assert ("no detectable" in first) == (low <= 0.5 <= high)
    assert ("ranks below" in first) == (high < 0.5)
    for word, least in (("almost always", 0.95), ("usually", 0.8), ("often dist", 0.65)):
        assert word not in first or low >= least
    if "distinguish" in first:
        assert low > 0.5
    if "less often" in second and "no less" not in second:
        assert cells["1"]["high"] < low
    if "more often" in second:
        assert cells["1"]["low"] > high
    if cells["1"]["low"] <= 0.5 <= cells["1"]["high"]:
        assert "no detectable difference" in second or "neither does it" in second
    numbers = [float(x) for x in re.findall(r"\d\.\d\d", sentence)]
    assert numbers == [many[1], low, high, few[1], few[0], few[2]]


def test_choice_sentence_names_the_detector_and_its_basis():
    def choice(**cells: Number) -> str:
        best = find_headline([one_arm({(name,): row for name, row in cells.items()}, LR)])
        return "".join(choice_sentence(best, {"min_k": "Min-K%"}))

    assert choice(loss=MIDDLE, min_k=HIGH, blind=HIGH) == (
        "Min-K%, the chosen detector: the best of 2 on the tuning split."
    )
    unchosen = [row | {"tune": nan} for row in (MIDDLE, HIGH)]
    assert "chosen on the rows that it is reported on, so interpret it with care" in choice(
        loss=unchosen[0], min_k=unchosen[1]
    )
    assert choice(loss=HIGH) == "loss, the chosen detector: no other was compared."
    assert choice(lira=HIGH, loss=MIDDLE).startswith("loss, the chosen detector")
    assert choice(lira=HIGH).startswith("lira, an upper bound")
    own = HIGH | {"n_members": 14}
    assert choice(recall=own, loss=MIDDLE, zlib=LOW).startswith("loss, ")


def test_seeds_sentence_depends_on_their_number():
    assert seeds_sentence(Estimate.of(HIGH)) == "One seed: intervals apply to this one model."
    three = Estimate.of(HIGH)._replace(seeds=3, about="any seed")
    assert seeds_sentence(three) == "3 seeds: intervals apply to any seed."
    two = three._replace(seeds=2, about="these models", seed_low=0.7, seed_high=0.9)
    assert seeds_sentence(two) == "2 seeds (0.70 and 0.90): intervals apply to these models."


def test_a_run_without_intervals_has_no_conclusion():
    for tables in ([], [arm({"all": cell(0.9, nan, nan)})]):
        assert "nothing to conclude" in summary_sentences(tables, find_headline(tables))[0]
