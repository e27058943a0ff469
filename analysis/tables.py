"""The rows of the metrics and differences tables for one cohort."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.arm import MODEL_FREE, Cohort, Column, LoadedArm
from analysis.auc_cells import ArmRows, ColumnMetrics
from analysis.checks.chance import column_error
from analysis.compared_rows import compare_rows
from analysis.copy_bins import ALL, EVERY_MEMBER, CopiesCell, copies_cells, is_dose
from analysis.metrics import tpr_name
from analysis.metrics_table import TUNE_AUC, Cell
from analysis.selection.ranking import rank_detectors
from analysis.settings import AnalysisSettings
from analysis.uncertainty.column_intervals import (
    CellInterval,
    Contrast,
    copies_contrasts,
    difference_intervals,
    no_interval,
)
from analysis.uncertainty.samples import number_groups

AUC = "auc"
TREND = "copies_trend"
"""Somers' D of score given realised copies among members: the trend test of a report."""
POOLED = "all"
COPIES_CONTRAST = "copies"
"""Rows of what each factor does: two numbers of copies within one arm."""


@dataclass(frozen=True, kw_only=True)
class PreparedCohort:
    """One cohort made ready: rows and cells shared by its columns."""

    cohort: Cohort
    arms: Sequence[ArmRows]
    datasets: Sequence[str]
    cells: Sequence[CopiesCell]
    settings: AnalysisSettings

    @classmethod
    def prepare(
        cls,
        cohort: Cohort,
        loaded: Sequence[LoadedArm],
        columns: Sequence[Column],
        settings: AnalysisSettings,
    ) -> "PreparedCohort":
        """Find comparable rows, and lay out the cells."""
        datasets = list(dict.fromkeys(name for arm in loaded for name in arm.dataset[arm.test]))
        groups = number_groups(loaded)
        rows = [
            ArmRows(
                loaded=arm,
                groups=number,
                compared={
                    dataset: compare_rows(
                        arm,
                        [column for column in columns if column in arm.index],
                        dataset,
                        cohort=cohort,
                        settings=settings,
                    )
                    for dataset in dict.fromkeys(arm.dataset[arm.test])
                },
            )
            for arm, number in zip(loaded, groups, strict=True)
        ]
        return cls(
            cohort=cohort,
            arms=rows,
            datasets=datasets,
            cells=_cells(loaded, settings),
            settings=settings,
        )

    def by_variant(self) -> "dict[str, PreparedCohort]":
        """Return the same work for the members of each variant alone, against all non-members.

        Empty where all members' copies carried the same.
        """
        by_arm = [set(arm.loaded.variant[arm.loaded.member & arm.loaded.test]) for arm in self.arms]
        variants = sorted(set[str]().union(*by_arm) - {""})
        if len(variants) < 2:
            return {}
        return {
            variant: replace(
                self,
                arms=[
                    replace(
                        arm,
                        compared={
                            name: rows.subset(~arm.loaded.member | (arm.loaded.variant == variant))
                            for name, rows in arm.compared.items()
                        },
                    )
                    for arm in self.arms
                ],
                cells=[cell for cell in self.cells if cell.label == ALL],
            )
            for variant in variants
        }

    def sample_name(self, dataset: str) -> str | None:
        """Return by which name a `ColumnSample` knows a dataset; the only one is all of them."""
        return None if dataset == POOLED or len(self.datasets) == 1 else dataset

    def metric_rows(
        self, column: Column, selection: str, measured: ColumnMetrics, *, variant: str = ALL
    ) -> Iterator[dict[str, Any]]:
        """Yield the metric rows of one column under one selection.

        Args:
            column: the detector's setting.
            selection: `default` or `tuned`.
            measured: of this work and column.
            variant: what the members' copies carried; `all` for all of them.
        """
        names = [AUC, *(tpr_name(rate) for rate in self.settings.false_positive_rates)]
        for d, dataset in enumerate([POOLED, *self.datasets]):
            head = {**self._head(column, selection, dataset), "variant": variant}
            found = measured.intervals[d]
            for c, cell in enumerate(self.cells):
                if self._too_few(cell, measured.n_members[d, 0, c]):
                    continue
                for m, name in enumerate(names):
                    value = measured.values[d, m, c]
                    measures = self._measures(found.cells[m][c], value, measured, (d, c))
                    counts = _counts(measured, (d, m, c))
                    row = {**head, "copies": cell.label, "metric": name, **measures, **counts}
                    if name == AUC and cell.label in (ALL, "0") and variant == ALL:
                        alone = None if dataset == POOLED else dataset
                        error = column_error(self.arms, column, cell, self.settings, alone)
                        row["chance_error"] = error
                    yield row
            if np.isfinite(measured.trend[d]):
                yield {
                    **head,
                    "copies": ALL,
                    "metric": TREND,
                    **found.trend.measures(measured.trend[d]),
                    "n_members": int(measured.trend_members[d]),
                    "n_nonmembers": 0,
                    "n_seeds": int(measured.trend_seeds[d]),
                }

    def _measures(
        self, cell: CellInterval, value: float, measured: ColumnMetrics, at: tuple[int, int]
    ) -> dict[str, float | str]:
        """Return a value with its interval; without one where there are too few members for it."""
        members = int(measured.n_members[at[0], 0, at[1]])
        if members >= self.settings.min_members or not np.isfinite(value):
            return cell.measures(value)
        return no_interval(value, f"none: {members} members, fewer than min_members")

    def choice_rows(
        self,
        columns: Sequence[Column],
        selection: str,
        tune: Mapping[Column, float],
    ) -> Iterator[dict[str, Any]]:
        """Yield what the best is chosen by.

        Args:
            columns: of one selection.
            selection: its name.
            tune: the AUC of each on the tune rows; NaN where there is none.
        """
        common = {"variant": ALL, "copies": ALL}
        for column in columns:
            if np.isfinite(tune.get(column, float("nan"))):
                head = self._head(column, selection, POOLED)
                value = no_interval(tune[column], "none: it is chosen by")
                yield {**head, **common, "metric": TUNE_AUC, **value, **self._tune_counts()}

    def _contestants(self, columns: Iterable[Column], dataset: str) -> list[Column]:
        """Return the columns that look at a model and are measured on the common rows."""
        return [
            column
            for column in columns
            if column.detector not in MODEL_FREE and not self._has_own_rows(column, dataset)
        ]

    def _tune_counts(self) -> dict[str, int]:
        """Return the tune rows that were chosen on, and their seeds."""
        arms = [arm.loaded for arm in self.arms]
        members = sum(int((~a.test & a.member & (a.copies > 0)).sum()) for a in arms)
        nonmembers = sum(int((~a.test & ~a.member).sum()) for a in arms)
        return {"n_members": members, "n_nonmembers": nonmembers, "n_seeds": len(arms)}

    def difference_rows(
        self,
        columns: Sequence[Column],
        selection: str,
        measured: Mapping[Column, ColumnMetrics],
        tune: Mapping[Column, float],
    ) -> Iterator[dict[str, Any]]:
        """Yield the paired AUC differences to `loss` and to the best of these columns.

        Args:
            columns: of one selection.
            selection: its name.
            measured: of each column.
            tune: the AUC of each on the tune rows, by which the best is chosen.
        """
        shown = [c for c, cell in enumerate(self.cells) if not is_dose(cell.label)]
        gaps: dict[
            tuple[str | None, str, Column, tuple[Column, ...]], list[dict[int, CellInterval]]
        ] = {}
        for d, dataset in enumerate([POOLED, *self.datasets]):
            intervals = {column: measured[column].intervals[d].cells[0] for column in columns}
            name = self.sample_name(dataset)
            shared = self._contestants(columns, dataset)
            for c in shown:
                cell = self.cells[c]
                found = {
                    column: measured[column].values[d, 0, c]
                    for column in shared
                    if np.isfinite(measured[column].values[d, 0, c])
                    and not self._too_few(cell, measured[column].n_members[d, 0, c])
                }
                if not found:
                    continue
                references = {"best": _best(found, measured, intervals, tune, (d, 0, c))}
                for column in found:
                    if column.detector == "loss":
                        references["loss"] = column
                for reference, other in references.items():
                    others = tuple(column for column in found if column != other)
                    key = (name, reference, other, others)
                    if key not in gaps:
                        gaps[key] = difference_intervals(
                            [measured[column].sample for column in others],
                            measured[other].sample,
                            name,
                            confidence=self.settings.confidence,
                            wanted=shown,
                        )
                    for column, band in zip(others, gaps[key], strict=True):
                        gap = float(found[column] - found[other])
                        yield {
                            **self._head(column, selection, dataset),
                            "copies": cell.label,
                            "versus": other.detector,
                            "versus_setting": other.setting,
                            "reference": reference,
                            "metric": AUC,
                            **band[c].measures(gap),
                            **_counts(measured[column], (d, 0, c)),
                        }

    def copies_rows(
        self, columns: Sequence[Column], measured: Mapping[Column, ColumnMetrics]
    ) -> Iterator[dict[str, Any]]:
        """Yield what more copies do to each column's AUC, as rows of what each factor does.

        The most copies less the fewest, then each number less the one before: one family.

        Args:
            columns: those that look at a model.
            measured: of each.
        """
        for d, dataset in enumerate([POOLED, *self.datasets]):
            families: dict[tuple[tuple[int, int], ...], list[Column]] = {}
            for column in columns:
                if pairs := self._dose_pairs(measured[column], d):
                    families.setdefault(pairs, []).append(column)
            for pairs, same in families.items():
                found = copies_contrasts(
                    [measured[column].sample for column in same],
                    self.sample_name(dataset),
                    pairs,
                    confidence=self.settings.confidence,
                )
                for column, contrasts in zip(same, found, strict=True):
                    for (c, b), contrast in zip(pairs, contrasts, strict=True):
                        yield {
                            **self.cohort.columns(),
                            "kind": COPIES_CONTRAST,
                            "factor": "copies",
                            "dataset": dataset,
                            "detector": column.detector,
                            "setting": column.setting,
                            "level": self.cells[c].label,
                            "versus": self.cells[b].label,
                            "term": "difference",
                            **_contrast_columns(measured[column], contrast, (d, 0, c), (d, 0, b)),
                        }

    def _dose_pairs(self, found: ColumnMetrics, dataset: int) -> tuple[tuple[int, int], ...]:
        """Return the cells of numbers of copies that are compared; empty with fewer than two."""
        doses = [
            c
            for c, cell in enumerate(self.cells)
            if is_dose(cell.label)
            and cell.low > 0
            and found.n_members[dataset, 0, c] >= self.settings.min_members
            and np.isfinite(found.values[dataset, 0, c])
        ]
        ends = [(doses[-1], doses[0])] if len(doses) > 1 else []
        return tuple(dict.fromkeys([*ends, *zip(doses[1:], doses, strict=False)]))

    def _head(self, column: Column, selection: str, dataset: str) -> dict[str, str]:
        return {
            **self.cohort.columns(),
            "model": self.cohort.model,
            "dataset": dataset,
            "detector": column.detector,
            "setting": column.setting,
            "selection": selection,
        }

    def _too_few(self, cell: CopiesCell, members: int) -> bool:
        return cell.label != ALL and members < self.settings.min_members

    def _has_own_rows(self, column: Column, dataset: str) -> bool:
        return any(
            column in rows.own
            for arm in self.arms
            for name, rows in arm.compared.items()
            if dataset in (POOLED, name)
        )


def _best(
    columns: Iterable[Column],
    measured: Mapping[Column, ColumnMetrics],
    intervals: Mapping[Column, Sequence[CellInterval]],
    tune: Mapping[Column, float],
    at: tuple[int, int, int],
) -> Column:
    """Return the best of some columns in one cell, as the page calls it."""
    by_name = {column.detector: column for column in columns}
    cells = {}
    for name, column in by_name.items():
        found = measured[column]
        counts = _counts(found, at)
        cells[name] = Cell(
            setting=column.setting,
            value=float(found.values[at]),
            low=intervals[column][at[2]].low,
            high=intervals[column][at[2]].high,
            n_members=counts["n_members"],
            n_nonmembers=counts["n_nonmembers"],
            n_seeds=counts["n_seeds"],
            tune=tune.get(column, float("nan")),
        )
    # Without a single interval there is no best, and any reference is as good as another.
    return by_name[next(iter(rank_detectors(cells)), next(iter(by_name)))]


def _contrast_columns(
    found: ColumnMetrics, contrast: Contrast, one: tuple[int, ...], other: tuple[int, ...]
) -> dict[str, Any]:
    """Return a difference of two cells as columns of what each factor does."""
    value = float(found.values[one] - found.values[other])
    about = contrast.alone.about
    counts = [_counts(found, at) for at in (one, other)]
    return {
        "value": value,
        "low": contrast.band.low,
        "high": contrast.band.high,
        "alone_low": contrast.alone.low,
        "alone_high": contrast.alone.high,
        **{name: min(each[name] for each in counts) for name in ("n_members", "n_seeds")},
        "shown": "" if about.startswith("none: ") else about,
        "reason": about.removeprefix("none: ") if about.startswith("none: ") else "",
    }


def _counts(measured: ColumnMetrics, at: tuple[int, ...]) -> dict[str, int]:
    """Return the rows and seeds behind one value."""
    return {
        "n_members": int(measured.n_members[at]),
        "n_nonmembers": int(measured.n_nonmembers[at]),
        "n_seeds": int(measured.n_seeds[at]),
    }


def _cells(loaded: Sequence[LoadedArm], settings: AnalysisSettings) -> list[CopiesCell]:
    if any(arm.arm.copies is None for arm in loaded):
        return [EVERY_MEMBER]
    counts = [count for arm in loaded for count in arm.copies[arm.member & arm.test].tolist()]
    cells = copies_cells(counts, high_copies=settings.high_copies)
    if settings.zero_copies == "nonmember":
        cells = [cell for cell in cells if cell.high > 0]
    return cells
