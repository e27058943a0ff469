"""The rows of a whole study in memory: every contaminated arm and seed, one setting a detector.

Each detector stands with the setting that the report shows (chosen on `tune`, else its default), on
the test rows that its arm compares it on. Groups have one number over all arms and seeds, so what
two arms share can be told. Cost: 8 bytes a row, detector, arm and seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from analysis.arm import MODEL_FREE, Arm, Cohort, Column, LoadedArm, cohorts, load_arm
from analysis.compared_rows import compare_rows
from analysis.factors.joint import Rows
from analysis.intervals.influence import Counts, Mask
from analysis.metrics import Floats
from analysis.selection.tuning import Choice, reported_columns
from analysis.settings import AnalysisSettings
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
