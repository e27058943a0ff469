"""The tables of docs/statistics.md: what a cell shows, and when it is simulated again."""

import numpy as np
import pytest

from analysis.intervals.bounds import Interval
from scripts.calibration.coverage import AGAIN, Coverage, coverage, shown, simulated
from scripts.calibration.simulation import Design, simulate


def interval(low: list[float], high: list[float]) -> Interval:
    blank = np.zeros(len(low))
    fields = dict.fromkeys(Interval._fields, blank)
    return Interval(**{**fields, "low": np.array(low), "high": np.array(high)})


def test_coverage_counts_intervals_given_and_those_that_hold():
    found = interval([0.4, 0.6, np.nan], [0.6, 0.7, np.nan])
    assert coverage(found, 0.5) == Coverage(1, 2, 3)
    assert coverage(found, np.array([0.5, 0.65, 0.5])) == Coverage(2, 2, 3)


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((950, 1000, 1000), "95.0"),
        ((919, 1000, 1000), "**91.9**"),
        ((976, 1000, 1000), "**97.6**"),
        ((760, 800, 1000), "95.0 (20 % none)"),
        ((60, 70, 1000), "refused: 93 % none, 1.0 % missed"),
        ((300, 500, 1000), "**refused: 50 % none, 20.0 % missed**"),
        ((0, 0, 1000), "refused: 100 % none, 0.0 % missed"),
    ],
)
def test_a_cell_outside_of_what_is_asked_is_bold(counts: tuple[int, int, int], text: str):
    assert shown(Coverage(*counts)) == text


def test_a_cell_outside_shows_new_studies_alone():
    asked = []

    def draw(name: str) -> Coverage:
        asked.append(name)
        return Coverage(90, 100, 100) if not name else Coverage(95, 100, 100)

    assert simulated(draw) == "95.0 †"
    assert asked[0] == ""
    assert len(set(asked)) == 1 + AGAIN
    assert simulated(lambda name: Coverage(95, 100, 100)) == "95.0"


def test_another_draw_has_other_studies_of_the_same_design():
    design = Design(20, 1, 0.8)
    first, same, other = (simulate(design, 5, draw) for draw in ("", "", " again 0"))
    assert np.array_equal(first.raw[0], same.raw[0])
    assert not np.isin(first.raw[0], other.raw[0]).any()
