"""The rows of the metrics and differences tables for one cohort."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import nan
from typing import Any

import numpy as np

from analysis.arm import MODEL_FREE, Cohort, Column, LoadedArm
from analysis.auc_cells import ArmRows, ColumnMetrics, number_groups
from analysis.checks.chance import column_error
from analysis.compared_rows import compare_rows
from analysis.copy_bins import ALL, EVERY_MEMBER, CopiesCell, copies_cells, is_dose
from analysis.intervals.estimate import Estimate
from analysis.intervals.numbers import Numbers
from analysis.metrics import TUNE_AUC, tpr_name
from analysis.selection.ranking import rank_detectors
from analysis.settings import AnalysisSettings

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
        """Return by which name `Numbers` know a dataset; the only one is all of them."""
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
            for c, cell in enumerate(self.cells):
                members = measured.cells[d][0][c].members
                if self._too_few(cell, members):
                    continue
                few = members < self.settings.min_members
                for m, name in enumerate(names):
                    found = measured.cells[d][m][c]
                    if few and np.isfinite(found.value):
                        about = f"none: {members} members, fewer than min_members"
                        found = Estimate(found.value, nan, nan, about, *found[4:8])
                    row = {**head, "copies": cell.label, "metric": name, **found.row()}
                    if name == AUC and cell.label in (ALL, "0") and variant == ALL:
                        alone = None if dataset == POOLED else dataset
                        error = column_error(self.arms, column, cell, self.settings, alone)
                        row["chance_error"] = error
                    yield row
            if np.isfinite(measured.trend[d].value):
                yield {**head, "copies": ALL, "metric": TREND, **measured.trend[d].row()}

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
                value = Estimate(tune[column], nan, nan, "none: it is chosen by").measures()
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
        for d, dataset in enumerate([POOLED, *self.datasets]):
            name = self.sample_name(dataset)
            shared = self._contestants(columns, dataset)
            gap_of = paired_gaps(
                {column: measured[column].auc for column in shared}, name, self.settings
            )
            for c in shown:
                cell = self.cells[c]
                found = {
                    column: auc
                    for column in shared
                    for auc in (measured[column].cells[d][0][c],)
                    if np.isfinite(auc.value) and not self._too_few(cell, auc.members)
                }
                if not found:
                    continue
                references = {"best": _best(found, tune)}
                for column in found:
                    if column.detector == "loss":
                        references["loss"] = column
                for reference, other in references.items():
                    for column, auc in found.items():
                        if column == other:
                            continue
                        gap = gap_of(column, other)[c].around(auc.value - found[other].value)
                        yield {
                            **self._head(column, selection, dataset),
                            "copies": cell.label,
                            "versus": other.detector,
                            "versus_setting": other.setting,
                            "reference": reference,
                            "metric": AUC,
                            **gap.measures(),
                            **auc.counts(),
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
        level = self.settings.confidence
        for d, dataset in enumerate([POOLED, *self.datasets]):
            families: dict[Column, tuple[tuple[int, int], ...]] = {
                column: self._dose_pairs(measured[column].cells[d][0]) for column in columns
            }
            order = list(dict.fromkeys(families.values()))
            for column in sorted(columns, key=lambda column: order.index(families[column])):
                found, pairs = measured[column], families[column]
                if not pairs:
                    continue
                gaps = found.auc.of(self.sample_name(dataset)).between(pairs)
                # All of them together (Bonferroni), and each alone.
                bands = gaps.estimates(confidence=1 - (1 - level) / len(pairs))
                for pair, band, alone in zip(
                    pairs, bands, gaps.estimates(confidence=level), strict=True
                ):
                    one, other = (found.cells[d][0][c] for c in pair)
                    yield {
                        **self.cohort.columns(),
                        "kind": COPIES_CONTRAST,
                        "factor": "copies",
                        "dataset": dataset,
                        "detector": column.detector,
                        "setting": column.setting,
                        "level": self.cells[pair[0]].label,
                        "versus": self.cells[pair[1]].label,
                        "term": "difference",
                        "value": one.value - other.value,
                        "low": band.low,
                        "high": band.high,
                        "alone_low": alone.low,
                        "alone_high": alone.high,
                        "n_members": min(one.members, other.members),
                        "n_seeds": min(one.seeds, other.seeds),
                        "shown": "" if alone.reason else alone.about,
                        "reason": alone.reason or "",
                    }

    def _dose_pairs(self, aucs: Sequence[Estimate]) -> tuple[tuple[int, int], ...]:
        """Return the cells of numbers of copies that are compared; empty with fewer than two."""
        doses = [
            c
            for c, (cell, auc) in enumerate(zip(self.cells, aucs, strict=True))
            if is_dose(cell.label)
            and cell.low > 0
            and auc.members >= self.settings.min_members
            and np.isfinite(auc.value)
        ]
        ends = [(doses[-1], doses[0])] if len(doses) > 1 else []
        return tuple(dict.fromkeys([*ends, *zip(doses[1:], doses, strict=False)]))

    def _head(self, column: Column, selection: str, dataset: str) -> dict[str, str]:
        return {
            **self.cohort.place(),
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


def _best(aucs: Mapping[Column, Estimate], tune: Mapping[Column, float]) -> Column:
    """Return the best of some columns in one cell, as the page calls it."""
    by_name = {column.detector: column for column in aucs}
    best = rank_detectors(
        {name: aucs[column] for name, column in by_name.items()},
        {name: tune.get(column, nan) for name, column in by_name.items()},
    )
    # Without a single interval there is no best, and any reference is as good as another.
    return by_name[next(iter(best), next(iter(by_name)))]


def paired_gaps(
    numbers: Mapping[Column, Numbers], dataset: str | None, settings: AnalysisSettings
) -> Callable[[Column, Column], list[Estimate]]:
    """Return a function of two columns that finds their paired differences, each once."""

    @cache
    def gap(one: Column, other: Column) -> list[Estimate]:
        found = numbers[one] - numbers[other]
        return found.estimates(dataset, confidence=settings.confidence)

    return gap


def _cells(loaded: Sequence[LoadedArm], settings: AnalysisSettings) -> list[CopiesCell]:
    if any(arm.arm.copies is None for arm in loaded):
        return [EVERY_MEMBER]
    counts = [count for arm in loaded for count in arm.copies[arm.member & arm.test].tolist()]
    cells = copies_cells(counts, high_copies=settings.high_copies)
    if settings.zero_copies == "nonmember":
        cells = [cell for cell in cells if cell.high > 0]
    return cells
