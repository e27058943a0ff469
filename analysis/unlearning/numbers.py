"""Numbers of one model with their influence values, and the rows of the question `unlearning`.

What differences between models and verdicts are made of. The same rows stand behind both sides of a
difference, so what the texts have in common cancels; `analysis.intervals.clustered` joins
datasets and seeds as it does for every number of the report. Cost: 1 ms a detector, dataset and
seed of 200 rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import axis_column
from analysis.copy_bins import ALL, CopiesCell
from analysis.intervals.bounds import LEAST_GROUPS, Interval, Scale, find_interval
from analysis.intervals.clustered import Clustered, Weighted, cluster
from analysis.intervals.influence import (
    Counts,
    Mask,
    Sample,
    Side,
    auc_sample,
    difference,
    trend_sample,
)
from analysis.metrics import Floats
from analysis.tables import POOLED
from analysis.unlearning.evidence import Cohort, ModelKey, Rows


class Part(NamedTuple):
    """K numbers of one dataset of one seed."""

    sample: Sample
    weight: Floats
    """[K]: the part of each in what is pooled."""
    forget: Counts
    """Rows that a number is of, [K]."""
    holdout: int
    """Rows that they are held against; 0 for a mean."""
    left_out: int
    """Rows without a value."""
    present: Mask
    """Which groups have a row in each number, [K, groups]."""


Numbers = Sequence[Mapping[str, Part]]
"""For each seed, by dataset; empty for a seed that has no number."""


def numbers_of(
    rows: Sequence[Rows],
    values: Sequence[Floats | None],
    datasets: Callable[[Rows], Sequence[str]],
    part: Callable[[Floats, Rows, str], Part | None],
) -> list[dict[str, Part]]:
    """Return numbers of one model by seed and dataset.

    Args:
        rows: of each seed.
        values: of all rows, by seed; None for a seed without the model.
        datasets: of a seed, that may have a number.
        part: returns the numbers of one dataset of one seed.
    """
    return [
        {}
        if own is None
        else {
            dataset: found
            for dataset in datasets(seed)
            if (found := part(own, seed, dataset)) is not None
        }
        for seed, own in zip(rows, values, strict=True)
    ]


def auc_part(
    scores: Floats, rows: Rows, dataset: str, cells: Sequence[CopiesCell], n_groups: int
) -> Part | None:
    """Return the AUC of each cell of the forget set against the holdout; None without two sides.

    Args:
        scores: of all rows, [n]; those that are not finite are left out.
        rows: of the arm.
        dataset: which.
        cells: numbers of copies.
        n_groups: of the dataset, over all seeds.
    """
    here = (rows.dataset == dataset) & rows.test
    scored = np.isfinite(scores)
    inside = np.flatnonzero(here & rows.forget & scored)
    outside = np.flatnonzero(here & rows.holdout & scored)
    if len(inside) < 1 or _groups(rows, outside) < 2:
        return None
    within = _within(cells, rows.copies[inside])
    sample = auc_sample(
        Side(scores[inside], rows.group[inside]),
        Side(scores[outside], rows.group[outside]),
        within,
        n_groups,
    )
    return Part(
        sample=sample,
        weight=within.sum(axis=1).astype(np.float64),
        forget=within.sum(axis=1),
        holdout=len(outside),
        left_out=int((here & (rows.forget | rows.holdout) & ~scored).sum()),
        present=_present(within, rows.group[inside], n_groups),
    )


def mean_part(
    values: Floats,
    rows: Rows,
    chosen: Mask,
    dataset: str,
    cells: Sequence[CopiesCell],
    n_groups: int,
) -> Part | None:
    """Return the mean over the texts of each cell; None where no text has a value.

    Args:
        values: of all rows, [n]; those that are not finite are left out.
        rows: of the arm.
        chosen: which rows count, [n].
        dataset: which.
        cells: numbers of copies.
        n_groups: of the dataset, over all seeds.
    """
    here = (rows.dataset == dataset) & chosen
    inside = np.flatnonzero(here & np.isfinite(values))
    if not len(inside):
        return None
    within = _within(cells, rows.copies[inside])
    return Part(
        sample=mean_sample(values[inside], rows.group[inside], within, n_groups),
        weight=within.sum(axis=1).astype(np.float64),
        forget=within.sum(axis=1),
        holdout=0,
        left_out=int(here.sum()) - len(inside),
        present=_present(within, rows.group[inside], n_groups),
    )


def trend_part(residual: Floats, rows: Rows, dataset: str, n_groups: int) -> Part | None:
    """Return Somers' D of a difference given copies, over pairs of texts of the forget set.

    Args:
        residual: of all rows, [n].
        rows: of the arm.
        dataset: which.
        n_groups: of the dataset, over all seeds.
    """
    here = (rows.dataset == dataset) & rows.forget
    inside = np.flatnonzero(here & np.isfinite(residual))
    side = Side(residual[inside], rows.group[inside])
    sample, pairs = trend_sample(side, rows.copies[inside], n_groups)
    if not pairs:
        return None
    return Part(
        sample=sample,
        weight=np.array([pairs]),
        forget=np.array([len(inside)]),
        holdout=0,
        left_out=int(here.sum()) - len(inside),
        present=_present(np.ones((1, len(inside)), dtype=bool), rows.group[inside], n_groups),
    )


def mean_sample(values: Floats, groups: Counts, within: Mask, n_groups: int) -> Sample:
    """Return the mean of every cell with its influence values, as one side of two.

    Args:
        values: [m].
        groups: [m].
        within: which values each cell holds, [K, m].
        n_groups: numbers of groups lie below.
    """
    count = within.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = within @ values / np.where(count > 0, count, np.nan)
    influence = np.zeros((2, len(within), n_groups))
    found = np.zeros(len(within), dtype=np.int64)
    for k, cell in enumerate(within):
        found[k] = len(set(groups[cell].tolist()))
        scale = np.sqrt(found[k] / max(found[k] - 1, 1)) / max(int(count[k]), 1)
        np.add.at(influence[0, k], groups[cell], scale * (values[cell] - value[k]))
    freedom = np.maximum(np.stack([found - 1.0, np.ones(len(within))]), 1.0)
    return Sample(value, influence, freedom, np.stack([found, found]))


def gap_of(one: Numbers, other: Numbers) -> Numbers:
    """Return `one - other` of the same rows, where both have numbers."""
    return [
        {
            name: mine[name]._replace(sample=difference(mine[name].sample, theirs[name].sample))
            for name in mine
            if name in theirs
        }
        for mine, theirs in zip(one, other, strict=True)
    ]


def clustered(numbers: Numbers, dataset: str | None) -> Clustered | None:
    """Return K numbers over all seeds.

    Args:
        numbers: by seed and dataset.
        dataset: which; None for all of them together, weighted by their rows.
    """
    parts = [
        [
            Weighted(name, part.sample, part.weight)
            for name, part in seed.items()
            if dataset in (None, name)
        ]
        for seed in numbers
    ]
    return cluster(parts) if any(parts) else None


class Behind(NamedTuple):
    """How much stands behind K numbers."""

    forget: Counts
    """Rows, summed over the seeds, [K]."""
    holdout: Counts
    groups: Counts
    """Different groups of those rows over all seeds, [K]."""
    left_out: int
    """Rows without a value."""


def behind(numbers: Numbers, dataset: str | None) -> Behind:
    """Count what stands behind K numbers; arguments as for `clustered`."""
    parts = [(n, p) for seed in numbers for n, p in seed.items() if dataset in (None, n)]
    wide = len(parts[0][1].weight) if parts else 1
    forget, holdout = np.zeros(wide, dtype=np.int64), np.zeros(wide, dtype=np.int64)
    groups: list[set[tuple[str, int]]] = [set() for _ in range(wide)]
    for name, part in parts:
        forget += part.forget
        holdout += np.where(part.forget > 0, part.holdout, 0)
        for k in range(wide):
            groups[k] |= {(name, int(g)) for g in np.flatnonzero(part.present[k])}
    return Behind(
        forget=forget,
        holdout=holdout,
        groups=np.array([len(one) for one in groups], dtype=np.int64),
        left_out=sum(part.left_out for _, part in parts),
    )


def _within(cells: Sequence[CopiesCell], copies: Counts) -> Mask:
    return np.array([cell.holds(copies) for cell in cells], dtype=bool).reshape(len(cells), -1)


def _present(within: Mask, groups: Counts, n_groups: int) -> Mask:
    found = np.zeros((len(within), n_groups), dtype=bool)
    for k, cell in enumerate(within):
        found[k, groups[cell]] = True
    return found


def _groups(rows: Rows, places: Counts) -> int:
    return len(set(rows.group[places].tolist()))


NO_DETECTOR = "-"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What a number is called."""

    key: ModelKey
    name: str
    detector: str = NO_DETECTOR
    setting: str = ""
    note: str = ""
    """What is to be said of it besides."""
    expected: int = 1
    """Seeds that have the models it is of."""


FindInterval = Callable[[str | None], tuple[Clustered, Interval] | None]
"""Returns K numbers of a dataset (None: of all together) and their intervals; None for none."""


@dataclass(kw_only=True)
class RowWriter:
    """Gathers the rows of one cohort."""

    cohort: Cohort
    cells: Sequence[CopiesCell]
    """Numbers of copies, the first of which is all of them."""
    confidence: float
    """Coverage asked of every interval."""
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, measure: Measure, numbers: Numbers, find: FindInterval) -> None:
        """Add a number of all datasets together and of each, of all copies and of each number.

        Numbers of copies with fewer than three groups get no row. A number of which there is
        nothing gets one, without a value.

        Args:
            measure: what it is called.
            numbers: what stands behind it: one number a cell, or one for all.
            find: its intervals.
        """
        # A dataset of which no text counts here has nothing to say.
        datasets = dict.fromkeys(name for seed in numbers for name in seed)
        for dataset in (None, *datasets):
            counted = behind(numbers, dataset)
            found = find(dataset)
            if found is None:
                self._write(measure, dataset, ALL, {"note": _joined(measure.note, "no value")})
                continue
            clusters, interval = found
            for k, cell in enumerate(self.cells[: len(clusters.value)]):
                if k and counted.groups[k] < LEAST_GROUPS:
                    continue
                self._write(
                    measure,
                    dataset,
                    cell.label,
                    {
                        "value": float(clusters.value[k]),
                        "low": float(interval.low[k]),
                        "high": float(interval.high[k]),
                        "forget": int(counted.forget[k]),
                        "holdout": int(counted.holdout[k]),
                        "groups": int(counted.groups[k]),
                        "seeds": int(clusters.seeds[k]),
                        "note": _joined(
                            warning_of(interval.about[k]),
                            _missing(measure, int(clusters.seeds[k])),
                            _left_out(counted.left_out),
                            measure.note,
                        ),
                    },
                )

    def add_scaled(self, measure: Measure, numbers: Numbers, scale: Scale) -> None:
        """Add numbers with the intervals of their scale; see `add`."""

        def find(dataset: str | None) -> tuple[Clustered, Interval] | None:
            found = clustered(numbers, dataset)
            if found is None or not np.isfinite(found.value).any():
                return None
            return found, find_interval(found, scale, confidence=self.confidence)

        self.add(measure, numbers, find)

    def add_plain(self, measure: Measure, dataset: str | None, values: dict[str, Any]) -> None:
        """Add a row that is found otherwise; what is not given is absent."""
        note = _joined(str(values.get("note", "")), measure.note)
        self._write(measure, dataset, ALL, {**values, "note": note})

    def _write(
        self, measure: Measure, dataset: str | None, copies: str, values: dict[str, Any]
    ) -> None:
        self.rows.append(
            {
                **{axis_column(key): value for key, value in self.cohort.axes.items()},
                "model": measure.key.model,
                "method": measure.key.method,
                "dataset": POOLED if dataset is None else dataset,
                "copies": copies,
                "measure": measure.name,
                "detector": measure.detector,
                "setting": measure.setting,
                **dict.fromkeys(("value", "low", "high"), nan),
                **dict.fromkeys(("forget", "holdout", "groups", "seeds"), 0),
                **values,
            }
        )


def warning_of(about: str) -> str:
    """Return what an interval warns of; of whom it speaks is plain from the number of seeds."""
    return about if about.startswith("none") else about.partition("; ")[2]


def _missing(measure: Measure, seeds: int) -> str:
    lacking = measure.expected - seeds
    return f"{lacking} of {measure.expected} seeds have no value" if lacking > 0 else ""


def _left_out(rows: int) -> str:
    return f"{rows} {'row has' if rows == 1 else 'rows have'} no value" if rows else ""


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
