"""Choices by AUC take the highest and do not depend on rounding."""

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.findings import Findings
from analysis.intervals.estimate import Estimate
from analysis.selection.ranking import TIE, best_first, highest_first, rank_detectors
from analysis.summary import find_headline
from tests.analysis.made_findings import number, one_arm

PAIRS = 38 * 70
"""Members times non-members of a tuning split: an AUC is a whole number of half pairs."""
aucs = st.lists(st.integers(0, 2 * PAIRS).map(lambda half: half / (2 * PAIRS)), min_size=1)
rounding = st.floats(-TIE / 2.1, TIE / 2.1)
SIDES = pytest.mark.parametrize("last_bits", [0.0, 1e-9, -1e-9])


def cell(low: float = 0.6) -> Estimate:
    return Estimate(0.7, low, 0.9, members=100, nonmembers=200, seeds=1)


def table(rate: str, **tune: float) -> Findings:
    cells = {(name,): number(0.7, 0.6, 0.9, tune=at) for name, at in tune.items()}
    return one_arm(cells, ("train.lr", rate))


@given(aucs, st.data())
def test_order_is_independent_of_rounding(values, data):
    elsewhere = [value + data.draw(rounding) for value in values]
    order = highest_first(elsewhere)
    assert order == highest_first(values)
    # Oracle: Python's stable sort of the exact numbers.
    assert order == sorted(range(len(values)), key=lambda at: -values[at])


@SIDES
def test_the_first_of_equal_detectors_is_the_best(last_bits):
    cells = {"loss": cell(), "zlib": cell(low=0.65), "min_k": cell()}
    tune = {"loss": 0.75, "zlib": 0.75 + last_bits, "min_k": 0.7}
    assert rank_detectors(cells, tune) == ["loss", "zlib", "min_k"]


@SIDES
def test_the_first_of_equal_arms_makes_the_headline(last_bits):
    tables = [table("0.1", loss=0.75, zlib=0.75 - last_bits), table("0.2", loss=0.75 + last_bits)]
    best = find_headline(tables)
    assert (best.table.cohort.label(), best.detector) == ("lr 0.1", "loss")


def test_without_tune_rows_the_lower_bound_decides():
    cells = {"loss": cell(), "zlib": cell(low=0.61), "min_k": cell(low=nan)}
    tune = dict.fromkeys(cells, nan)
    assert best_first(cells, tune) == ["zlib", "loss", "min_k"]
    with_blind = {**cells, "blind": cell()}
    assert best_first(with_blind, tune | {"blind": 0.5}) == ["blind", "loss", "zlib", "min_k"]
