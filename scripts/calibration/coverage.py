"""Coverage of intervals, and when a cell is simulated again.

Of some 500 cells a few are outside the limits by sampling variation of 1,000 studies. Such a cell
is simulated again with ten times as many new studies, and reports only these: no draw is chosen
over another. If most studies get no interval, the others are those whose value happened to be
mild, so the share of misses among all studies counts.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from analysis.intervals.ends import Interval
from analysis.intervals.influence import Floats

LOW, HIGH = 0.92, 0.975
"""The required coverage of each cell."""
AGAIN = 10
"""Times as many studies in a second simulation."""


class Coverage(NamedTuple):
    """Coverage of the intervals of many studies."""

    held: int
    """Studies whose interval contains the truth."""
    given: int
    """Studies that have an interval."""
    studies: int

    @property
    def share(self) -> float:
        """The share of intervals that contain the truth; NaN without any."""
        return self.held / self.given if self.given else float("nan")

    @property
    def refused(self) -> bool:
        """Whether at most half of the studies have an interval."""
        return 2 * self.given <= self.studies

    @property
    def outside(self) -> bool:
        """Whether coverage is too low or too high; if most are refused, whether too many miss."""
        if self.refused:
            return self.given - self.held > (1 - LOW) * self.studies
        return not LOW <= self.share <= HIGH


def coverage(interval: Interval, truth: Floats | float) -> Coverage:
    """Return the coverage of intervals; the truth is one number, or one for each study."""
    has_interval = np.isfinite(interval.low)
    covered = (interval.low <= truth) & (truth <= interval.high)
    return Coverage(int((covered & has_interval).sum()), int(has_interval.sum()), len(has_interval))


def settled(draw: Callable[[str], Coverage]) -> Coverage:
    """Return the coverage of a cell, simulated again if it is outside the limits.

    Args:
        draw: simulates the cell; another name is another draw.
    """
    cell = draw("")
    if not cell.outside:
        return cell
    rounds = [draw(f" again {number}") for number in range(AGAIN)]
    return Coverage(*(sum(counts) for counts in zip(*rounds, strict=True)))
