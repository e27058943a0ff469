"""The intervals of a column's cells, as they stand in the tables."""

from collections.abc import Sequence
from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from analysis.intervals.bounds import Interval, Scale, find_difference, find_interval
from analysis.intervals.clustered import Clustered
from analysis.intervals.max_t import max_t_quantile
from analysis.metrics import Floats
from analysis.uncertainty.samples import ColumnSample


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
    sample: ColumnSample,
    dataset: str | None,
    *,
    cells: int,
    rates: int,
    confidence: float,
    adjusted: bool = False,
) -> ColumnIntervals:
    """Return the intervals of a column's cells.

    Args:
        sample: the column.
        dataset: which; None for all together.
        cells: how many there are.
        rates: how many false-positive rates.
        confidence: coverage asked for.
        adjusted: whether the luck of the pool is taken out of the column.
    """
    grouped = sample.grouped(dataset)
    found = [sample.auc(dataset), *(sample.rate(dataset, index) for index in range(rates))]
    scales = [Scale.AUC, *[Scale.TPR] * rates]
    return ColumnIntervals(
        [
            _listed(one, scale, cells, confidence, grouped=grouped, adjusted=adjusted)
            for one, scale in zip(found, scales, strict=True)
        ],
        _listed(sample.trend(dataset), Scale.TREND, 1, confidence)[0],
    )


def difference_intervals(
    one: ColumnSample, other: ColumnSample, dataset: str | None, *, cells: int, confidence: float
) -> list[CellInterval]:
    """Return the intervals of the paired differences of AUC, cell by cell."""
    found = _Difference(one.minus(other).auc(dataset), one.auc(dataset), other.auc(dataset))
    return found.listed(cells, confidence)


def auc_bands(
    samples: Sequence[ColumnSample],
    dataset: str | None,
    *,
    cells: int,
    confidence: float,
    wanted: Sequence[int],
) -> list[list[CellInterval]]:
    """Return bands that hold the AUCs of all columns at once, by column and cell.

    Args:
        samples: the columns.
        dataset: which; None for all together.
        cells: how many there are.
        confidence: coverage asked for.
        wanted: cells that are shown; the others have no band.
    """
    ColumnSample.find_aucs(samples, dataset)
    found = [sample.auc(dataset) for sample in samples]
    grouped = any(sample.grouped(dataset) for sample in samples)
    quantiles = _band_quantiles(found, cells, confidence, wanted)
    return [
        _listed(one, Scale.AUC, cells, confidence, grouped=grouped, quantile=quantiles)
        for one in found
    ]


def difference_bands(
    samples: Sequence[ColumnSample],
    best: ColumnSample,
    dataset: str | None,
    *,
    cells: int,
    confidence: float,
    together: bool,
    wanted: Sequence[int],
) -> list[list[CellInterval]]:
    """Return the differences of all columns to one, by column and cell.

    Args:
        samples: the columns.
        best: the one.
        dataset: which; None for all together.
        cells: how many there are.
        confidence: coverage asked for.
        together: whether they shall hold all at once, or each for itself.
        wanted: cells that are shown; the others have no band.
    """
    gaps = [sample.minus(best) for sample in samples]
    ColumnSample.find_aucs([best, *samples], dataset)
    ColumnSample.find_aucs(gaps, dataset)
    found = [
        _Difference(gap.auc(dataset), sample.auc(dataset), best.auc(dataset))
        for gap, sample in zip(gaps, samples, strict=True)
    ]
    gap = [one.gap for one in found]
    quantiles = _band_quantiles(gap, cells, confidence, wanted) if together else None
    return [one.listed(cells, confidence, quantiles) for one in found]


class _Difference(NamedTuple):
    """A difference and what it is between; None where there are no rows."""

    gap: Clustered | None
    one: Clustered | None
    other: Clustered | None

    def listed(
        self, cells: int, confidence: float, quantile: Floats | None = None
    ) -> list[CellInterval]:
        if self.gap is None or self.one is None or self.other is None:
            return [_ABSENT] * cells
        interval = find_difference(
            self.gap, self.one, self.other, confidence=confidence, quantile=quantile
        )
        return _cells(self.gap, interval)


def _band_quantiles(
    found: Sequence[Clustered | None], cells: int, confidence: float, wanted: Sequence[int]
) -> Floats:
    there = [one for one in found if one is not None]
    quantiles = np.full(cells, np.nan) if there else np.zeros(cells)
    for k in wanted if there else ():
        quantiles[k] = max_t_quantile(
            np.stack([one.influence[k] for one in there]),
            min(float(one.freedom[k]) for one in there),
            confidence=confidence,
        )
    return quantiles


def _listed(
    found: Clustered | None,
    scale: Scale,
    cells: int,
    confidence: float,
    *,
    grouped: bool = False,
    adjusted: bool = False,
    quantile: Floats | None = None,
) -> list[CellInterval]:
    if found is None:
        return [_ABSENT] * cells
    interval = find_interval(
        found,
        scale,
        confidence=confidence,
        grouped=grouped,
        adjusted=adjusted,
        quantile=quantile,
    )
    return _cells(found, interval)


def _cells(found: Clustered, interval: Interval) -> list[CellInterval]:
    return [
        CellInterval(
            float(interval.low[k]),
            float(interval.high[k]),
            float(found.lowest[k]) if found.seeds[k] else nan,
            float(found.highest[k]) if found.seeds[k] else nan,
            interval.about[k],
        )
        for k in range(len(found.value))
    ]


def _reaching(found: CellInterval, value: float) -> dict[str, float]:
    if not isfinite(found.low):
        return {}
    return {"low": min(found.low, value), "high": max(found.high, value)}
