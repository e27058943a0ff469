"""The rows of a whole study in memory, and the AUCs of each detector in each arm of it.

Each detector stands with the setting that the report shows (chosen on `tune`, else its default), on
the test rows that its arm compares it on. Groups have one number over all arms and seeds, so what
two arms share can be told. Datasets are measured apart and joined, so that both stand on one pass.
Cost: 8 bytes a row, detector, arm and seed; about 1 ms a seed and dataset of 400 rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.arm import MODEL_FREE, Arm, Cohort, Column, LoadedArm, cohorts, load_arm
from analysis.compared_rows import compare_rows
from analysis.copy_bins import CopiesCell, copies_cells, is_dose
from analysis.factors.joint import (
    Aucs,
    Rows,
    dataset_aucs,
    no_aucs,
    pool_datasets,
    stack_aucs,
    stack_seeds,
)
from analysis.intervals.influence import Counts, Mask
from analysis.metrics import Floats
from analysis.selection.tuning import Choice, reported_columns
from analysis.settings import AnalysisSettings
from analysis.tables import POOLED
from inject.stream.exposures import NEVER, read_exposures
from train.loop.log import read_log

CONTAMINATED = "contaminated"


@dataclass(frozen=True, kw_only=True)
class SeedRows:
    """The test rows of one arm under one seed."""

    seed: int
    member: Mask
    """Whether it counts as one; a member without a copy may count as a non-member."""
    dataset: Counts
    group: Counts
    example: Counts
    """Number of the example; the same text has the same one in every arm and seed."""
    copies: Counts
    length: Floats
    """Characters of the text."""
    since: Floats
    """Tokens that were read after its last copy; NaN where no copy was read."""
    scores: Mapping[str, Floats]
    """By detector; NaN in rows that it is not measured on."""

    def rows(self, detector: str, which: Mask | None = None) -> Rows:
        """Return the rows of one detector, or those among them that are asked for."""
        scores = self.scores[detector]
        held = np.isfinite(scores) if which is None else np.isfinite(scores) & which
        return Rows(scores[held], self.member[held], self.dataset[held], self.group[held])

    def held(self, detector: str) -> Mask:
        """Return which rows a detector is measured on."""
        return np.isfinite(self.scores[detector])


@dataclass(frozen=True, kw_only=True)
class StudyArm:
    """One arm under all of its seeds."""

    cohort: Cohort
    settings: Mapping[str, str]
    """The setting of each detector that is reported."""
    seeds: tuple[SeedRows, ...]
    constant_rate: bool
    """Whether the learning rate was the same in every step."""

    def axis(self, name: str) -> str:
        """Return the arm's value of a swept axis."""
        return dict(self.cohort.axes)[name]


@dataclass(frozen=True, kw_only=True)
class Study:
    """All contaminated arms."""

    arms: tuple[StudyArm, ...]
    datasets: tuple[str, ...]
    """By number."""
    n_groups: int
    detectors: tuple[str, ...]
    """Those that look at a model and were scored in every arm, in the order of the scores."""


@dataclass
class _Numbers:
    """Numbers for names, given in order of appearance."""

    known: dict[str, int] = field(default_factory=dict)

    def of(self, names: Sequence[str]) -> Counts:
        return np.array([self.known.setdefault(n, len(self.known)) for n in names], dtype=np.int64)


def collect_study(
    arms: Sequence[Arm],
    choices: Mapping[Cohort, Sequence[Choice]],
    settings: AnalysisSettings,
) -> Study:
    """Read the contaminated arms of an experiment.

    Args:
        arms: all models.
        choices: the settings chosen in each cohort.
        settings: which rows are compared.
    """
    groups, datasets, examples = _Numbers(), _Numbers(), _Numbers()
    found = []
    for cohort, same in cohorts(arms).items():
        if cohort.model != CONTAMINATED or any(arm.copies is None for arm in same):
            continue
        loaded = [load_arm(arm) for arm in same]
        columns = reported_columns(loaded, choices[cohort])
        shown = {}
        for column, selections in columns.items():
            if column.detector not in MODEL_FREE and (
                "tuned" in selections or column.detector not in shown
            ):
                shown[column.detector] = column
        seeds = [
            _seed_rows(one, list(columns), shown, cohort, settings, (groups, datasets, examples))
            for one in loaded
        ]
        found.append(
            StudyArm(
                cohort=cohort,
                settings={name: column.setting for name, column in shown.items()},
                seeds=tuple(seeds),
                constant_rate=all(_constant_rate(arm) for arm in same),
            )
        )
    return Study(
        arms=tuple(found),
        datasets=tuple(datasets.known),
        n_groups=len(groups.known),
        detectors=tuple(
            name
            for name in (found[0].settings if found else ())
            if all(name in arm.settings for arm in found)
        ),
    )


def _seed_rows(
    arm: LoadedArm,
    columns: Sequence[Column],
    shown: Mapping[str, Column],
    cohort: Cohort,
    settings: AnalysisSettings,
    numbers: tuple[_Numbers, _Numbers, _Numbers],
) -> SeedRows:
    rows = np.flatnonzero(arm.test)
    scores = {name: np.full(len(rows), np.nan) for name in shown}
    for dataset in dict.fromkeys(arm.dataset[arm.test]):
        compared = compare_rows(arm, columns, dataset, cohort=cohort, settings=settings)
        for name, column in shown.items():
            held = compared.rows(column)[rows]
            scores[name][held] = arm.scores[rows[held], arm.index[column]]
    member = arm.member[rows]
    if settings.zero_copies == "nonmember":
        member = member & (arm.copies[rows] > 0)
    of = [arm.examples[row] for row in rows.tolist()]
    since = _tokens_since(arm)
    return SeedRows(
        seed=arm.arm.seed,
        member=member,
        dataset=numbers[1].of(arm.dataset[rows].tolist()),
        group=numbers[0].of(arm.group[rows].tolist()),
        example=numbers[2].of([one.example_id for one in of]),
        copies=arm.copies[rows],
        length=np.array([float(len(one.text)) for one in of]),
        since=np.array([since.get(one.example_id, np.nan) for one in of]),
        scores=scores,
    )


def _tokens_since(arm: LoadedArm) -> dict[str, float]:
    """Return how many tokens were read after the last copy of each example."""
    if arm.arm.training is None:
        return {}
    table = read_exposures(
        arm.arm.training, columns=["example_id", "status", "intact", "tokens_before"]
    )
    log = read_log(arm.arm.training)
    if not log:
        return {}
    last: dict[str, float] = {}
    for row in pa.Table.to_pylist(table):
        if row["status"] != NEVER and row["intact"]:
            name = row["example_id"]
            last[name] = max(last.get(name, 0.0), float(row["tokens_before"]))
    end = float(log[-1].tokens)
    return {name: max(end - at, 0.0) for name, at in last.items()}


def _constant_rate(arm: Arm) -> bool:
    if arm.training is None:
        return False
    rates = [row.lr for row in read_log(arm.training)]
    return bool(rates) and max(rates) - min(rates) <= 1e-9 * max(rates)


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
