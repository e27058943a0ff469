"""How detection fades: AUC by the optimiser steps since a model last saw an example.

Every pair of a member and a checkpoint that has seen it, placed among the non-members at the same
checkpoint and in the same dataset. Positions of copies are drawn at random, so among pairs with one
number of copies the time since the last is no choice of the text's. It goes with the learning rate,
though, wherever that is not constant: the slope within examples (`analysis.trajectory.slopes`) says
what fades. Intervals sum influence by group, so the pairs of one example count once. Cost: 2 ms a
checkpoint and setting.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import Column
from analysis.copy_bins import ALL, CopiesCell, copies_cells, is_dose
from analysis.intervals.clustered import Part
from analysis.intervals.ends import Scale
from analysis.intervals.numbers import Numbers
from analysis.settings import AnalysisSettings
from analysis.tables import AUC
from analysis.trajectory.slopes import (
    PreparedCheckpoint,
    fading_slope,
    mean_sample,
    place_datasets,
)

FADING_SLOPE = "fading_slope"
"""Change of placement for each doubling of one plus the steps since, within examples."""
NOT_CONSTANT = "the learning rate is not constant"
RATE_WARNING = (
    "The learning rate was not constant, so texts seen at different times were learnt differently: "
    "AUCs by the steps since the last copy do not show what fades, whichever way they run. The "
    "change within examples does."
)
EVERY = "all"


def not_constant(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether some rows of `fading` are of a learning rate that was not constant."""
    return any(row["interval"].endswith(NOT_CONSTANT) for row in rows)


class SinceBin(NamedTuple):
    """Steps since the last copy: 0, 1, 2 to 3, 4 to 7, 8 to 15 …"""

    low: int
    high: int

    @property
    def label(self) -> str:
        """The steps in words: `0`, `4-7`."""
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def since_bins(max_steps: int) -> list[SinceBin]:
    """Return the bins up to that many steps.

    >>> [one.label for one in since_bins(9)]
    ['0', '1', '2-3', '4-7', '8-15']
    """
    found, low = [SinceBin(0, 0)], 1
    while low <= max_steps:
        found.append(SinceBin(low, 2 * low - 1))
        low *= 2
    return found


def fading_rows(
    head: Mapping[str, str],
    every: Sequence[PreparedCheckpoint],
    column: Column,
    selections: Sequence[str],
    settings: AnalysisSettings,
) -> list[dict[str, Any]]:
    """Return one detector setting's rows of the question `fading`.

    Args:
        head: the axes' columns.
        every: all checkpoints of the cohort.
        column: detector and setting.
        selections: what the setting stands for; each row is given once for each.
        settings: how intervals are made.
    """
    scored = [one for one in every if all(column in a.loaded.index for a in one.work.arms)]
    seen = [
        (int(copies), int(since))
        for one in scored
        for arm, steps in zip(one.arms, one.since, strict=True)
        for rows in (compared.rows(column) for compared in arm.compared.values())
        for copies, since in zip(
            arm.loaded.copies[rows & arm.loaded.member & (steps >= 0)],
            steps[rows & arm.loaded.member & (steps >= 0)],
            strict=True,
        )
    ]
    if not seen:
        return []
    common = {**head, "detector": column.detector, "setting": column.setting}
    rows = []
    for cell in copies_cells([copies for copies, _ in seen], high_copies=settings.high_copies):
        if cell.low == 0:
            continue
        for since in since_bins(max(steps for _, steps in seen)):
            row = _fading_row(scored, column, cell, since, settings)
            if row is not None:
                rows.append({**common, "copies": cell.label, **row})
        if is_dose(cell.label) or cell.label == ALL:
            row = _slope_row(scored, column, cell, settings)
            if row is not None:
                rows.append({**common, "copies": cell.label, "since": EVERY, **row})
    return [{**row, "selection": selection} for selection in selections for row in rows]


def _fading_row(
    scored: Sequence[PreparedCheckpoint],
    column: Column,
    cell: CopiesCell,
    since: SinceBin,
    settings: AnalysisSettings,
) -> dict[str, Any] | None:
    """Return the AUC of the pairs of one bin, or None if there are too few members."""
    parts: list[dict[str, Part]] = []
    pairs, times = 0, 0.0
    for datasets in place_datasets(scored, column, cell):
        parts.append({})
        for dataset, every, groups in datasets:
            held = [
                one.among((steps >= since.low) & (steps <= since.high))
                for one in every
                for steps in (np.rint(2**one.doublings - 1),)
            ]
            held = [one for one in held if len(one.rows)]
            if not held:
                continue
            count = sum(len(one.rows) for one in held)
            parts[-1][dataset] = Part(
                mean_sample(held, groups.of_row, groups.counts[dataset]),
                np.array([float(count)]),
                np.array([len({int(row) for one in held for row in one.rows})]),
                max(len(one.outside) for one in held),
            )
            pairs += count
            times += sum(float((2**one.doublings - 1).sum()) for one in held)
    found = Numbers(parts, Scale.AUC).estimates(confidence=settings.confidence)
    if not found or found[0].members < settings.min_members:
        return None
    constant = all(one.constant_rate for one in scored)
    return {
        "since": since.label,
        "since_low": since.low,
        "since_high": since.high,
        "metric": AUC,
        **found[0].row(),
        "pairs": pairs,
        "interval": found[0].about + ("" if constant else f"; {NOT_CONSTANT}"),
        "tokens_since": times / pairs * scored[0].batch_tokens,
    }


def _slope_row(
    scored: Sequence[PreparedCheckpoint],
    column: Column,
    cell: CopiesCell,
    settings: AnalysisSettings,
) -> dict[str, Any] | None:
    """Return the slope within examples; None if too few were seen by two models."""
    numbers, pairs = fading_slope(scored, column, cell)
    found = numbers.estimates(confidence=settings.confidence)
    if not found or found[0].members < settings.min_members:
        return None
    return {"metric": FADING_SLOPE, **found[0].row(), "pairs": pairs}
