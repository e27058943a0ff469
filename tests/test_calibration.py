"""Coverage cells: when one is outside its limits, and when it is simulated again."""

import numpy as np
import pytest

from analysis.intervals.ends import Interval
from scripts.calibration.coverage import AGAIN, Coverage, coverage, settled
from scripts.calibration.simulation import Design, simulate


def interval(low: list[float], high: list[float]) -> Interval:
    blank = np.zeros(len(low))
    fields = dict.fromkeys(Interval._fields, blank)
    return Interval(**{**fields, "low": np.array(low), "high": np.array(high)})


def test_coverage_counts_intervals_and_those_that_contain_the_truth():
    intervals = interval([0.4, 0.6, np.nan], [0.6, 0.7, np.nan])
    assert coverage(intervals, 0.5) == Coverage(1, 2, 3)
    assert coverage(intervals, np.array([0.5, 0.65, 0.5])) == Coverage(2, 2, 3)


@pytest.mark.parametrize(
    ("counts", "outside"),
    [
        ((950, 1000, 1000), False),
        ((919, 1000, 1000), True),
        ((976, 1000, 1000), True),
        ((760, 800, 1000), False),
        ((60, 70, 1000), False),
        ((300, 500, 1000), True),
        ((0, 0, 1000), False),
    ],
)
def test_cell_is_outside_the_required_coverage(counts: tuple[int, int, int], outside: bool):
    assert Coverage(*counts).outside == outside


def test_cell_outside_reports_only_new_studies():
    draws = []

    def draw(name: str) -> Coverage:
        draws.append(name)
        return Coverage(90, 100, 100) if not name else Coverage(95, 100, 100)

    assert settled(draw) == Coverage(95 * AGAIN, 100 * AGAIN, 100 * AGAIN)
    assert draws[0] == ""
    assert len(set(draws)) == 1 + AGAIN
    assert settled(lambda name: Coverage(95, 100, 100)) == Coverage(95, 100, 100)


def test_another_draw_gives_other_studies_of_the_same_design():
    design = Design(20, 1, 0.8)
    first, same, other = (simulate(design, 5, draw) for draw in ("", "", " again 0"))
    assert np.array_equal(first.raw[0], same.raw[0])
    assert not np.isin(first.raw[0], other.raw[0]).any()
