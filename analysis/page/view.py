"""Shared by all parts of a page: its arms, its detectors in one order, and their names.

Detectors are in the order of their AUC in the headline's arm, the column that is shown. If a
run has more arms or detectors than fit in a picture, the same ones are shown throughout.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import (
    MODEL_FREE,
    Cohort,
    DetectorColumn,
    LoadedArm,
    cohorts,
    load_arm,
)
from analysis.arm_labels import arm_words
from analysis.compared_rows import ComparedRows, compare_rows
from analysis.copy_bins import ALL
from analysis.findings import Findings, Row, contaminated_cohorts
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Counts, Floats
from analysis.page.crossed import AxisHeading
from analysis.page.inputs import PageInputs
from analysis.selection.ranking import ranked
from analysis.selection.tuning import Choice, reported_columns
from analysis.summary import Headline
from analysis.tables import AUC, POOLED
from detect.detector_table import DetectorFacts

LOSS = "loss"
MAX_ARMS = 4
MAX_DETECTORS = 20
_FEW = 5


class CohortRows(NamedTuple):
    """Test rows of one column over all seeds and datasets of a cohort."""

    exceeded: Floats
    """Per member: the share of its own dataset's non-members that score as high or higher."""
    copies: Counts
    """Per member: realised copies."""
    members: Floats
    """Per member: score in robust standard deviations of its dataset's non-members from
    their median (median absolute deviation × 1.4826)."""
    nonmembers: Floats
    """Per non-member, on the same scale."""


@dataclass(frozen=True, kw_only=True)
class ReportView:
    """A run whose detectors have an AUC with an interval."""

    inputs: PageInputs
    tables: Sequence[Findings]
    """The metrics of all models."""
    best: Headline

    @property
    def name(self) -> str:
        """The chosen detector's name."""
        return self.title(self.best.detector)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The published names of detectors, by their own."""
        return {name: facts.title for name, facts in self.facts.items()}

    @cached_property
    def facts(self) -> Mapping[str, DetectorFacts]:
        """The detectors' declarations, by name."""
        return {detector.name: detector for detector in self.inputs.detectors}

    def title(self, detector: str) -> str:
        """Return the printed name of a detector."""
        return self.names.get(detector, detector)

    def words(self, cohort: Cohort) -> str:
        """Return an arm's name, or its axes in words; empty if there is but one."""
        return self.inputs.arm_words(cohort)

    @property
    def axes(self) -> list[str]:
        """The swept axes, by their dotted keys."""
        return self.inputs.axes

    def arm_of(self, row: Row) -> str:
        """Return the arm of a row, as `words`."""
        return self.inputs.arm_of(row)

    def heads(self, arms: Sequence[Findings]) -> list[tuple[str, str]]:
        """Return for each arm its name or the head of its group, and its own; first those shown."""
        arms, further = arms[:MAX_ARMS], arms[MAX_ARMS:]
        varied = [
            at
            for at, _ in enumerate(self.best.table.cohort.axes)
            if len({table.cohort.axes[at] for table in arms}) > 1
        ]
        first = varied[0] if varied else 0
        values = Counter(table.cohort.axes[first] for table in arms if varied)
        grouped = len(varied) > 1 and max(values.values()) > 1
        return [
            (
                name or (capital(arm_words(axes[first : first + 1])) if grouped else ""),
                capital(arm_words(axes[:first] + axes[first + 1 :]))
                if grouped and not name
                else capital(arm_words(axes[at] for at in varied)) or "All members",
            )
            for table in arms
            for axes, name in [(table.cohort.axes, self.inputs.arm_name(table.cohort))]
        ] + [("", self.words(table.cohort)) for table in further]

    @property
    def arm(self) -> str:
        """The headline's arm in words; empty if there is but one."""
        return self.words(self.best.table.cohort)

    @property
    def where(self) -> str:
        """The headline's arm as the start of a caption; empty if there is but one."""
        return f"{capital(self.arm)}. " if self.arm else ""

    @cached_property
    def order(self) -> list[str]:
        """All detectors, by falling AUC in the headline's arm, controls last."""
        table = self.best.table
        detectors = dict.fromkeys(
            name for table in self.tables for name in table.values("detector")
        )

        def sort_key(name: str) -> tuple[bool, float]:
            cell = table.reported(name)
            height = -cell.value if cell is not None and cell.available else 9.0
            return name in MODEL_FREE, height

        return sorted(detectors, key=sort_key)

    @cached_property
    def shown(self) -> list[str]:
        """The detectors of the pictures: those that look at a model, the first and `loss`."""
        names = self.models_only
        if len(names) <= MAX_DETECTORS:
            return names
        selected = set(names[:MAX_DETECTORS])
        for name in (LOSS, self.best.detector):
            if name in names and name not in selected:
                selected.remove([last for last in names if last in selected and last != LOSS][-1])
                selected.add(name)
        return [name for name in names if name in selected]

    @cached_property
    def arms(self) -> list[Findings]:
        """All arms, the headline's first, then those that differ from it in the fewest axes."""
        headline_axes = self.best.table.cohort.axes

        def distance(table: Findings) -> int:
            return sum(a != b for a, b in zip(table.cohort.axes, headline_axes, strict=True))

        near = sorted(contaminated_cohorts(self.tables), key=distance)
        # Arms that share their first axis are side by side.
        firsts = list(dict.fromkeys(table.cohort.axes[:1] for table in near[:MAX_ARMS]))
        nearest = sorted(near[:MAX_ARMS], key=lambda table: firsts.index(table.cohort.axes[:1]))
        return [*nearest, *near[MAX_ARMS:]]

    @cached_property
    def bold(self) -> Mapping[Cohort, str]:
        """The detector of each arm that is best on the rows kept for choosing."""
        return {table.cohort: names[0] for table in self.arms if (names := ranked(table))}

    @cached_property
    def models_only(self) -> list[str]:
        """All detectors that look at a model and were measured in the headline's arm."""
        return [
            name
            for name in self.order
            if name not in MODEL_FREE and self.best.table.reported(name) is not None
        ]

    @cached_property
    def factor_rows(self) -> list[Row]:
        """What is found of each factor over all datasets, detectors in the order of the page."""
        table = self.inputs.analysis.factors
        order = {name: at for at, name in enumerate(self.order)}
        rows = [] if table is None else table.to_pylist()
        pooled = [row for row in rows if row["dataset"] == POOLED]
        return sorted(pooled, key=lambda row: order.get(row["detector"], len(order)))

    def changes(self, kind: str) -> list[Row]:
        """Return the rows of a kind that have an interval, of the chosen detector."""
        key = kind, self.best.detector
        return [
            row
            for row in self.factor_rows
            if (row["kind"], row["detector"]) == key and isfinite(row["low"])
        ]

    @cached_property
    def differences(self) -> Findings:
        """Each detector's paired AUC differences to others (`reference`: `best`, `loss`).

        In the headline's arm, pooled, of the headline's kind of settings.
        """
        place = {"dataset": POOLED, "copies": ALL, "selection": self.best.selection, "metric": AUC}
        rows = Findings(self.inputs.analysis.differences.to_pylist())
        return rows.where(**self.best.table.cohort.place(), **place)

    def kind(self, detector: str) -> str:
        """Return the mark of a detector: orange if it is chosen, dashed if it is `loss`."""
        if detector == self.best.detector:
            return "chosen"
        return "baseline" if detector == LOSS else ""

    def few(self, names: Sequence[str]) -> list[str]:
        """Return at most five of the detectors: the chosen one, the next ones, and `loss`."""
        chosen = [name for name in names if name == self.best.detector]
        order = [*chosen, *(name for name in names if name not in chosen)]
        selected = order[:_FEW]
        return [*selected[:-1], LOSS] if LOSS in order and LOSS not in selected else selected

    def head(self, detector: str, note: str = "") -> AxisHeading:
        """Return the head of a detector's row."""
        return AxisHeading(self.title(detector), self.kind(detector), note=note, name=detector)

    @cached_property
    def choices(self) -> Sequence[Choice]:
        """The settings that were chosen in the headline's arm."""
        return self.inputs.analysis.choices.get(self.best.table.cohort, ())

    @cached_property
    def loaded(self) -> list[LoadedArm]:
        """The scores of the headline's arm, one arm per seed."""
        return [load_arm(arm) for arm in cohorts(self.inputs.arms).get(self.best.table.cohort, [])]

    @cached_property
    def columns(self) -> Mapping[DetectorColumn, tuple[str, ...]]:
        """The settings that are reported of the headline's arm, with what each stands for."""
        return reported_columns(self.loaded, self.choices)

    def column(self, detector: str) -> DetectorColumn:
        """Return the headline's kind of setting of a detector, else its default."""
        columns_by_kind = {at: column for column, kinds in self.columns.items()
                if column.detector == detector for at in kinds}  # fmt: skip
        return columns_by_kind.get(self.best.selection) or columns_by_kind["default"]

    @cached_property
    def compared(self) -> list[tuple[LoadedArm, ComparedRows]]:
        """The test rows that are compared, by seed and dataset of the headline's arm."""
        cohort, settings = self.best.table.cohort, self.inputs.analysis_settings
        return [
            (arm, compare_rows(arm, [*self.columns], dataset, cohort=cohort, settings=settings))
            for arm in self.loaded
            for dataset in dict.fromkeys(arm.dataset[arm.test])
        ]

    def rows(self, detector: str) -> CohortRows:
        """Return a detector's scores, placed and standardised within each dataset and seed."""
        empty = np.zeros(0)
        parts: list[Sequence[Any]] = [(empty, empty.astype(np.int64), empty, empty)]
        for arm, compared in self.compared:
            column = self.column(detector)
            rows, scores = compared.rows(column), arm.scores[:, arm.index[column]]
            inside, outside = scores[rows & arm.member], np.sort(scores[rows & ~arm.member])
            if not len(inside) or not len(outside):
                continue
            higher = len(outside) - np.searchsorted(outside, inside, side="left")
            centre = np.median(outside)
            scale = 1.4826 * np.median(np.abs(outside - centre)) or 1.0
            parts.append((higher / len(outside), arm.copies[rows & arm.member],
                          (inside - centre) / scale, (outside - centre) / scale))  # fmt: skip
        return CohortRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def capital(words: str) -> str:
    """Return the words with their first letter capitalised."""
    return f"{words[:1].upper()}{words[1:]}"


def arm_suffix(cohort: Cohort) -> str:
    """Return ` (ARM)`; nothing if there is but one."""
    return f" ({words})" if (words := arm_words(cohort.axes)) else ""


def short_counts(cell: Estimate | None) -> str:
    """Return `n 112 + 210`."""
    return "" if cell is None else f"n {cell.members:,} + {cell.nonmembers:,}"


def setting_words(setting: str) -> str:
    """Return a detector's setting for readers: `k 0.35, window 10`; empty for none."""
    if setting in ("default", "-"):
        return ""
    return setting.replace("=", " ").replace(":", ", ")
