"""The AUCs of one detector in every arm of a study: by dataset and by number of copies.

Datasets are measured apart and joined, so that both stand on one pass. Cost: about 1 ms a seed and
dataset of 400 rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.copy_bins import CopiesCell, copies_cells, is_dose
from analysis.factors.joint import (
    Aucs,
    dataset_aucs,
    no_aucs,
    pool_datasets,
    stack_aucs,
    stack_seeds,
)
from analysis.factors.study import SeedRows, Study, StudyArm
from analysis.intervals.influence import Counts, Mask
from analysis.metrics import Floats
from analysis.tables import POOLED

CellsOf = Callable[[SeedRows], list[Mask]]
LENGTH_BINS = 4
"""Parts of equally many rows that texts are dealt into by their length, or by tokens since."""


class ArmAucs(NamedTuple):
    """One detector in one arm, by dataset (`all` for all together). Seeds are the study's."""

    every: Mapping[str, Aucs]
    """Of all members with a copy, K = 1."""
    doses: Mapping[str, Aucs]
    """By number of copies."""
    dose_x: Floats
    """log2(1 + copies) of each, a mean where several numbers share a bin."""


def study_seeds(study: Study) -> list[int]:
    """Return the seeds of all arms, sorted."""
    return sorted({rows.seed for arm in study.arms for rows in arm.seeds})


def measure_arm(
    study: Study, arm: StudyArm, detector: str, *, min_members: int, high_copies: int
) -> ArmAucs:
    """Return the AUCs of one detector in one arm.

    Args:
        study: all arms.
        arm: which.
        detector: which.
        min_members: doses with fewer, over all seeds, are left out.
        high_copies: as in the report's rows.
    """
    counts = np.concatenate([rows.copies[rows.member & rows.held(detector)] for rows in arm.seeds])
    cells = [
        cell
        for cell in copies_cells(counts.tolist(), high_copies=high_copies)
        if cell.label == "all" or (is_dose(cell.label) and cell.holds(counts).sum() >= min_members)
    ]
    found = by_dataset(
        study, arm, detector, lambda rows: [cell.holds(rows.copies) for cell in cells]
    )
    at = [k for k, cell in enumerate(cells) if is_dose(cell.label)]
    return ArmAucs(
        {name: one.pick([0]) for name, one in found.items()},
        {name: one.pick(at) for name, one in found.items()},
        np.array([_mean_dose(cells[k], counts) for k in at]),
    )


def by_dataset(
    study: Study, arm: StudyArm, detector: str, cells: CellsOf, *, both: bool = False
) -> dict[str, Aucs]:
    """Return the AUCs of some cells under every seed of the study, by dataset.

    Args:
        study: all arms.
        arm: which.
        detector: which.
        cells: the rows of each cell, of one seed.
        both: cells hold non-members, too: each cell is measured against its own.
    """
    alone: dict[str, list[Aucs]] = {name: [] for name in (POOLED, *study.datasets)}
    seeds = {rows.seed: rows for rows in arm.seeds}
    for seed in study_seeds(study):
        count, made = 0, {}
        if seed in seeds:
            rows = seeds[seed]
            within = cells(rows)
            count = len(within)
            made = _measured(rows, detector, within, study.n_groups, both=both)
        for number, name in enumerate(study.datasets):
            alone[name].append(made.get(number, no_aucs(count, study.n_groups)))
        pooled = pool_datasets(list(made.values())) if made else no_aucs(count, study.n_groups)
        alone[POOLED].append(pooled)
    width = max(one.value.shape[1] for one in alone[POOLED])
    return {
        name: stack_seeds(
            [one if one.value.shape[1] else no_aucs(width, study.n_groups) for one in found]
        )
        for name, found in alone.items()
        if any(np.isfinite(one.value).any() for one in found)
    }


def _measured(
    rows: SeedRows, detector: str, within: Sequence[Mask], n_groups: int, *, both: bool
) -> dict[int, Aucs]:
    held = rows.held(detector)
    if not both:
        return dataset_aucs(rows.rows(detector), [cell[held] for cell in within], n_groups)
    parts = [
        dataset_aucs(rows.rows(detector, cell), [np.ones(int((held & cell).sum()), bool)], n_groups)
        for cell in within
    ]
    made = {}
    for number in {number for part in parts for number in part}:
        columns = [part.get(number, no_aucs(1, n_groups)) for part in parts]
        made[number] = stack_aucs(columns)
    return made


def _mean_dose(cell: CopiesCell, counts: Counts) -> float:
    return float(np.log2(1.0 + counts[cell.holds(counts)]).mean())


def quantile_cells(values: Floats, which: Mask, strata: Counts) -> list[Mask]:
    """Deal rows into parts of rising value, as many of each stratum in each part.

    Args:
        values: what they are dealt by, [rows].
        which: the rows that are dealt; the others are in no part.
        strata: rows of one stratum are dealt among themselves, [rows].
    """
    part = np.full(len(values), -1)
    for stratum in np.unique(strata[which]):
        at = np.flatnonzero(which & (strata == stratum))
        order = np.argsort(values[at], kind="stable")
        part[at[order]] = np.arange(len(at)) * LENGTH_BINS // len(at)
    return [part == number for number in range(LENGTH_BINS)]
