"""The intervals of columns' cells, as they stand in the tables.

All columns at once: their numbers stand in one array, column by column, and each interval is found
from its own number alone. Cost: 5 ms for 25 columns of nine cells.
"""

from collections.abc import Sequence
from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from analysis.intervals.clustered import Clustered
from analysis.intervals.ends import Interval, Scale, find_difference, find_interval
from analysis.uncertainty.samples import ColumnSample, Number, auc_gaps, cell_gaps


class CellInterval(NamedTuple):
    """One number's interval, and what the seeds say apart."""

    low: float
    high: float
    seed_low: float
    """The lowest of the seeds' values; with two seeds this and the next are both."""
    seed_high: float
    about: str
    """`any seed`, `this model`, `these 2 models`; or `none: ` and why there is none."""

    def measures(self, value: float) -> dict[str, float | str]:
        """Return a row's value and interval; no interval where there is no value."""
        if not isfinite(value):
            return {"value": value, **_ABSENT._as_row()}
        # A TPR's interval is that of a threshold a little higher: it reaches as far as the value.
        return {"value": float(value), **self._as_row(), **_reaching(self, float(value))}

    def _as_row(self) -> dict[str, float | str]:
        return {
            "low": self.low,
            "high": self.high,
            "seed_low": self.seed_low,
            "seed_high": self.seed_high,
            "interval": self.about,
        }


_ABSENT = CellInterval(nan, nan, nan, nan, "none: no value")


def no_interval(value: float, about: str) -> dict[str, float | str]:
    """Return a row's value without an interval."""
    return {"value": float(value), **_ABSENT._replace(about=about)._as_row()}


class ColumnIntervals(NamedTuple):
    """All intervals of a column in one dataset."""

    cells: list[list[CellInterval]]
    """By metric (AUC first, then the rates) and cell."""
    trend: CellInterval


def column_intervals(
    samples: Sequence[ColumnSample],
    dataset: str | None,
    *,
    cells: int,
    rates: int,
    confidence: float,
) -> list[ColumnIntervals]:
    """Return the intervals of the cells of columns, all found at once.

    Args:
        samples: the columns.
        dataset: which; None for all together.
        cells: how many there are.
        rates: how many false-positive rates.
        confidence: coverage asked for.
    """
    numbers: list[Number] = ["auc", *range(rates)]
    by_metric = []
    for number in numbers:
        ColumnSample.find(samples, number, dataset)
        found = [sample.number(number, dataset) for sample in samples]
        scale = Scale.AUC if number == "auc" else Scale.TPR
        by_metric.append(_listed(found, scale, cells, confidence))
    ColumnSample.find(samples, "trend", dataset)
    trends = _listed([one.trend(dataset) for one in samples], Scale.TREND, 1, confidence)
    return [
        ColumnIntervals([metric[at] for metric in by_metric], trends[at][0])
        for at in range(len(samples))
    ]


def difference_intervals(
    samples: Sequence[ColumnSample],
    best: ColumnSample,
    dataset: str | None,
    *,
    confidence: float,
    wanted: Sequence[int],
) -> list[dict[int, CellInterval]]:
    """Return the paired differences of AUC of all columns to one, by column and cell wanted.

    Args:
        samples: the columns.
        best: the one.
        dataset: which; None for all together.
        confidence: coverage asked for.
        wanted: the cells that are shown.
    """
    ColumnSample.find([best, *samples], "auc", dataset)
    listed = [dict.fromkeys(wanted, _ABSENT) for _ in samples]
    cells = np.array(wanted, dtype=np.int64)
    theirs, compared = best.auc(dataset), []
    for at, gap in enumerate(auc_gaps(samples, best, dataset, wanted)):
        mine = samples[at].auc(dataset)
        if gap is not None and mine is not None and theirs is not None:
            compared.append((at, (gap, mine.at(cells), theirs.at(cells))))
    if not compared:
        return listed
    gap, one, other = (Clustered.joined([parts[k] for _, parts in compared]) for k in range(3))
    flat = _cells(gap, find_difference(gap, one, other, confidence=confidence))
    for nth, (at, _) in enumerate(compared):
        part = flat[nth * len(wanted) : (nth + 1) * len(wanted)]
        listed[at] = dict(zip(wanted, part, strict=True))
    return listed


class Contrast(NamedTuple):
    """The interval of one difference within a family."""

    band: CellInterval
    """Holds with all others of the family (Bonferroni)."""
    alone: CellInterval


def copies_contrasts(
    samples: Sequence[ColumnSample],
    dataset: str | None,
    pairs: Sequence[tuple[int, int]],
    *,
    confidence: float,
) -> list[list[Contrast]]:
    """Return the differences of AUC between cells of one column, by column and pair.

    Args:
        samples: the columns.
        dataset: which; None for all together.
        pairs: the cell and the one that is taken off; those of one column are a family.
        confidence: coverage asked for.
    """
    ColumnSample.find(samples, "auc", dataset)
    listed = [[Contrast(_ABSENT, _ABSENT)] * len(pairs) for _ in samples]
    ones, others = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    compared = [
        (at, (gap, every.at(ones), every.at(others)))
        for at, gap in enumerate(cell_gaps(samples, dataset, pairs))
        if gap is not None and (every := samples[at].auc(dataset)) is not None
    ]
    if not compared:
        return listed
    gap, one, other = (Clustered.joined([parts[k] for _, parts in compared]) for k in range(3))
    apart = (one.seeds != gap.seeds) | (other.seeds != gap.seeds)
    flat = [
        _UNLIKE if unlike else Contrast(*ends)
        for unlike, *ends in zip(
            apart.tolist(),
            *(
                _cells(gap, find_difference(gap, one, other, confidence=1 - (1 - confidence) / m))
                for m in (len(pairs), 1)
            ),
            strict=True,
        )
    ]
    for nth, (at, _) in enumerate(compared):
        listed[at] = flat[nth * len(pairs) : (nth + 1) * len(pairs)]
    return listed


_APART = _ABSENT._replace(about="none: not every seed has members of both")
_UNLIKE = Contrast(_APART, _APART)


def _listed(
    found: Sequence[Clustered | None],
    scale: Scale,
    cells: int,
    confidence: float,
) -> list[list[CellInterval]]:
    """Return the intervals of the cells of each column.

    Args:
        found: of each column its numbers, one a cell.
        scale: of what kind they are.
        cells: how many there are.
        confidence: coverage asked for.
    """
    listed = [[_ABSENT] * cells for _ in found]
    there = [(at, one) for at, one in enumerate(found) if one is not None]
    if not there:
        return listed
    every = Clustered.joined([one for _, one in there])
    flat = _cells(every, find_interval(every, scale, confidence=confidence))
    for nth, (at, _) in enumerate(there):
        listed[at] = flat[nth * cells : (nth + 1) * cells]
    return listed


def _cells(found: Clustered, interval: Interval) -> list[CellInterval]:
    lowest, highest = (
        np.where(found.seeds > 0, ends, nan).tolist() for ends in (found.lowest, found.highest)
    )
    ends = (interval.low.tolist(), interval.high.tolist(), lowest, highest)
    return [CellInterval(*cell) for cell in zip(*ends, interval.about, strict=True)]


def _reaching(found: CellInterval, value: float) -> dict[str, float]:
    if not isfinite(found.low):
        return {}
    return {"low": min(found.low, value), "high": max(found.high, value)}
