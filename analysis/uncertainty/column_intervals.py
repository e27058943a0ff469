"""The intervals of columns' cells, as they stand in the tables.

All columns at once: their numbers stand in one array, column by column, and each interval is found
from its own number alone. Cost: 5 ms for 25 columns of nine cells.
"""

from collections.abc import Sequence
from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from analysis.intervals.bounds import Interval, Scale, find_difference, find_interval
from analysis.intervals.clustered import Clustered
from analysis.intervals.max_t import max_t_quantile
from analysis.metrics import Floats
from analysis.uncertainty.samples import ColumnSample, Number, auc_gaps


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
    adjusted: bool = False,
) -> list[ColumnIntervals]:
    """Return the intervals of the cells of columns, all found at once.

    Args:
        samples: the columns.
        dataset: which; None for all together.
        cells: how many there are.
        rates: how many false-positive rates.
        confidence: coverage asked for.
        adjusted: whether the luck of the pool is taken out of the columns.
    """
    grouped = [sample.grouped(dataset) for sample in samples]
    numbers: list[Number] = ["auc", *range(rates)]
    by_metric = []
    for number in numbers:
        ColumnSample.find(samples, number, dataset)
        found = [sample.number(number, dataset) for sample in samples]
        scale = Scale.AUC if number == "auc" else Scale.TPR
        by_metric.append(
            _listed(found, scale, cells, confidence, grouped=grouped, adjusted=adjusted)
        )
    ColumnSample.find(samples, "trend", dataset)
    trends = _listed([one.trend(dataset) for one in samples], Scale.TREND, 1, confidence)
    return [
        ColumnIntervals([metric[at] for metric in by_metric], trends[at][0])
        for at in range(len(samples))
    ]


def difference_intervals(
    one: ColumnSample, other: ColumnSample, dataset: str | None, *, cells: int, confidence: float
) -> list[CellInterval]:
    """Return the intervals of the paired differences of AUC, cell by cell."""
    wanted = range(cells)
    (found,) = difference_bands(
        [one], other, dataset, confidence=confidence, together=False, wanted=wanted
    )
    return [found[k] for k in wanted]


def auc_bands(
    samples: Sequence[ColumnSample], dataset: str | None, *, confidence: float, cell: int
) -> list[CellInterval]:
    """Return bands that hold the AUCs of all columns at once in one cell, by column.

    Args:
        samples: the columns.
        dataset: which; None for all together.
        confidence: coverage asked for.
        cell: which.
    """
    ColumnSample.find(samples, "auc", dataset)
    whole = [sample.auc(dataset) for sample in samples]
    found = [None if one is None else one.part(cell, cell + 1) for one in whole]
    grouped = [any(sample.grouped(dataset) for sample in samples)] * len(samples)
    quantiles = _band_quantiles(found, 1, confidence)
    bands = _listed(found, Scale.AUC, 1, confidence, grouped=grouped, quantile=quantiles)
    return [band[0] for band in bands]


def difference_bands(
    samples: Sequence[ColumnSample],
    best: ColumnSample,
    dataset: str | None,
    *,
    confidence: float,
    together: bool,
    wanted: Sequence[int],
) -> list[dict[int, CellInterval]]:
    """Return the differences of all columns to one, by column and cell wanted.

    Args:
        samples: the columns.
        best: the one.
        dataset: which; None for all together.
        confidence: coverage asked for.
        together: whether they shall hold all at once, or each for itself.
        wanted: the cells that are shown.
    """
    ColumnSample.find([best, *samples], "auc", dataset)
    gaps = auc_gaps(samples, best, dataset, wanted)
    found = [
        _Difference(gap, sample.auc(dataset), best.auc(dataset))
        for gap, sample in zip(gaps, samples, strict=True)
    ]
    quantiles = _band_quantiles(gaps, len(wanted), confidence) if together else None
    return _listed_differences(found, wanted, confidence, quantiles)


class _Difference(NamedTuple):
    """A difference of the cells wanted and what it is between, of all; None without rows."""

    gap: Clustered | None
    one: Clustered | None
    other: Clustered | None


def _listed_differences(
    found: Sequence[_Difference],
    wanted: Sequence[int],
    confidence: float,
    quantile: Floats | None,
) -> list[dict[int, CellInterval]]:
    listed = [dict.fromkeys(wanted, _ABSENT) for _ in found]
    cells = np.array(wanted, dtype=np.int64)
    there = [
        (at, (each.gap, each.one.at(cells), each.other.at(cells)))
        for at, each in enumerate(found)
        if each.gap is not None and each.one is not None and each.other is not None
    ]
    if not there:
        return listed
    gap, one, other = (Clustered.joined([parts[k] for _, parts in there]) for k in range(3))
    repeated = None if quantile is None else np.tile(quantile, len(there))
    interval = find_difference(gap, one, other, confidence=confidence, quantile=repeated)
    flat = _cells(gap, interval)
    for nth, (at, _) in enumerate(there):
        mine = flat[nth * len(wanted) : (nth + 1) * len(wanted)]
        listed[at] = dict(zip(wanted, mine, strict=True))
    return listed


def _band_quantiles(found: Sequence[Clustered | None], cells: int, confidence: float) -> Floats:
    """Return of each cell how many standard errors hold the numbers of all columns at once."""
    there = [one for one in found if one is not None]
    if not there:
        return np.zeros(cells)
    return np.array(
        [
            max_t_quantile(
                np.stack([one.influence[k] for one in there]),
                min(float(one.freedom[k]) for one in there),
                confidence=confidence,
            )
            for k in range(cells)
        ]
    )


def _listed(
    found: Sequence[Clustered | None],
    scale: Scale,
    cells: int,
    confidence: float,
    *,
    grouped: Sequence[bool] | None = None,
    adjusted: bool = False,
    quantile: Floats | None = None,
) -> list[list[CellInterval]]:
    """Return the intervals of the cells of each column.

    Args:
        found: of each column its numbers, one a cell.
        scale: of what kind they are.
        cells: how many there are.
        confidence: coverage asked for.
        grouped: of each column, whether some group has several rows; None for none.
        adjusted: whether the luck of the pool is taken out.
        quantile: of each cell, as for `find_interval`.
    """
    listed = [[_ABSENT] * cells for _ in found]
    there = [(at, one) for at, one in enumerate(found) if one is not None]
    if not there:
        return listed
    each = [grouped is not None and grouped[at] for at, _ in there]
    every = Clustered.joined([one for _, one in there])
    interval = find_interval(
        every,
        scale,
        confidence=confidence,
        grouped=np.repeat(each, cells),
        adjusted=adjusted,
        quantile=None if quantile is None else np.tile(quantile, len(there)),
    )
    flat = _cells(every, interval)
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
