"""The rows of a whole study in memory, and the AUCs of each detector in each arm of it.

Each detector has the setting that the report shows (chosen on `tune`, else its default), on
the test rows that its arm compares it on. Groups have one number over all arms and seeds, so the
part that two arms share is known. Cost: 8 bytes per row, detector, arm and seed; about 1 ms per
seed and dataset of 400 rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from analysis.arm import Arm, Cohort, LoadedArm, cohorts, load_arm
from analysis.auc_cells import PreparedCohort, cohort_rows, compared_sides
from analysis.intervals.influence import Counts, Floats, Mask
from analysis.intervals.joint import BySeed
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import Rows, auc_numbers
from analysis.selection.tuning import Choice, reported_columns, shown_columns
from analysis.settings import AnalysisSettings
from analysis.tables import POOLED
from inject.stream.exposures import NEVER, read_exposures
from train.loop.log import read_log

CONTAMINATED = "contaminated"


@dataclass(frozen=True, kw_only=True)
class StudyArm:
    """One arm: its examples under all of its seeds, one seed after the other, [n] each."""

    cohort: Cohort
    settings: Mapping[str, str]
    """The setting of each detector that is reported."""
    seeds: tuple[int, ...]
    rows: Rows
    """Of the test split; a member without a copy may count as a non-member."""
    scores: Mapping[str, Floats]
    """By detector; NaN in rows that it is not measured on."""
    copies: Counts
    length: Floats
    """Characters of the text."""
    since: Floats
    """Tokens that were read after its last copy; NaN if no copy was read."""
    constant_rate: bool
    """Whether the learning rate was the same in every step."""

    def axis(self, name: str) -> str:
        """Return the arm's value of a swept axis."""
        return dict(self.cohort.axes)[name]

    def held(self, detector: str) -> Mask:
        """Return which rows a detector is measured on."""
        return np.isfinite(self.scores[detector])


@dataclass(frozen=True, kw_only=True)
class Study:
    """All contaminated arms."""

    arms: tuple[StudyArm, ...]
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]
    """Of all arms, sorted."""
    detectors: tuple[str, ...]
    """Those that look at a model and were scored in every arm, in the order of the scores."""
    settings: AnalysisSettings
    """Which rows are compared, and the coverage of intervals."""

    @property
    def axes(self) -> list[str]:
        """The dotted keys that the arms differ in."""
        return [name for name, _ in self.arms[0].cohort.axes] if self.arms else []

    def axis_numbers(self, axis: str) -> list[float] | None:
        """Return the arms' values of an axis; None if one is not a positive number."""
        try:
            values = [float(arm.axis(axis)) for arm in self.arms]
        except ValueError:
            return None
        return values if all(isfinite(value) and value > 0 for value in values) else None

    def families(self, axis: str) -> Mapping[Cohort, list[int]]:
        """Return the arms that differ only in one axis, two or more, by their shared axes."""
        by_rest: dict[Cohort, list[int]] = {}
        for k, arm in enumerate(self.arms):
            shared = tuple((name, "" if name == axis else value) for name, value in arm.cohort.axes)
            by_rest.setdefault(arm.cohort._replace(axes=shared), []).append(k)
        return {cohort: at for cohort, at in by_rest.items() if len(at) > 1}

    def pairs(self) -> Iterator[tuple[Cohort, str, int, int]]:
        """Yield each value of each axis with the axis's first value, all else being equal.

        That is what both arms share (without the axis), the axis, and the places of the two.
        """
        for axis in self.axes:
            numbers = self.axis_numbers(axis)
            for cohort, at in self.families(axis).items():
                order = at if numbers is None else sorted(at, key=numbers.__getitem__)
                for k in order[1:]:
                    yield cohort, axis, k, order[0]

    def setting(self, at: Sequence[int], detector: str) -> str:
        """Return the setting of a detector in some arms."""
        return " | ".join(dict.fromkeys(self.arms[k].settings[detector] for k in at))

    def aucs(
        self, arm: StudyArm, detector: str, within: Mask | None = None, rows: Rows | None = None
    ) -> Numbers:
        """Return AUCs of one arm under the seeds of the study, influence by the jackknife.

        Args:
            arm: which.
            detector: which.
            within: which rows each of K numbers is of, [K, n]; None for one of all members.
            rows: of the arm, with other members or non-members; None for its own.
        """
        scores = arm.scores[detector]
        numbers = auc_numbers(rows or arm.rows, scores, within, least=1, jackknife=True)
        by_seed = dict(zip(arm.seeds, numbers.seeds, strict=True))
        return Numbers([by_seed.get(seed, {}) for seed in self.seeds], numbers.scale)

    def by_dataset(self, numbers: Numbers) -> Iterator[tuple[str, BySeed]]:
        """Yield numbers by dataset (`all`: all together), if there is any value."""
        for name in (POOLED, *self.datasets):
            seeds = numbers.by_seed(None if name == POOLED else name)
            if np.isfinite(seeds.value).any():
                yield name, seeds


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
    loaded = {
        cohort: [load_arm(arm) for arm in cohort_arms]
        for cohort, cohort_arms in cohorts(arms).items()
        if cohort.model == CONTAMINATED and all(arm.copies is not None for arm in cohort_arms)
    }
    if not loaded:
        return Study(arms=(), datasets=(), seeds=(), detectors=(), settings=settings)
    rows = cohort_rows([arm for cohort_arms in loaded.values() for arm in cohort_arms])
    sizes = [sum(len(arm.member) for arm in cohort_arms) for cohort_arms in loaded.values()]
    groups = np.split(rows.group, np.cumsum(sizes)[:-1])
    collected = [
        _study_arm(cohort, cohort_arms, choices[cohort], settings, group)
        for (cohort, cohort_arms), group in zip(loaded.items(), groups, strict=True)
    ]
    first = collected[0].settings
    return Study(
        arms=tuple(collected),
        datasets=tuple(dict.fromkeys(rows.dataset.tolist())),
        seeds=tuple(sorted({seed for arm in collected for seed in arm.seeds})),
        detectors=tuple(name for name in first if all(name in arm.settings for arm in collected)),
        settings=settings,
    )


def _study_arm(
    cohort: Cohort,
    loaded: Sequence[LoadedArm],
    choices: Sequence[Choice],
    settings: AnalysisSettings,
    group: Counts,
) -> StudyArm:
    """Return one arm under all of its seeds; groups have one number in all arms."""
    columns = reported_columns(loaded, choices)
    columns_by_detector = {column.detector: column for column in shown_columns(columns)}
    work = PreparedCohort.prepare(cohort, loaded, list(columns), settings)
    inside, outside = compared_sides(work.rows.member, work.copies, settings)
    test = np.concatenate([arm.test for arm in loaded])
    measured = {
        name: np.any(work.sides(column), axis=0) for name, column in columns_by_detector.items()
    }
    texts = [example.text for arm in loaded for example in arm.examples]
    return StudyArm(
        cohort=cohort,
        settings={name: column.setting for name, column in columns_by_detector.items()},
        seeds=tuple(arm.arm.seed for arm in loaded),
        rows=replace(
            work.rows, group=group, member=inside & test, nonmember=outside & test, levels=None
        ),
        scores={
            name: np.where(measured[name], work.scores(column), np.nan)
            for name, column in columns_by_detector.items()
        },
        copies=work.copies,
        length=np.array([float(len(text)) for text in texts]),
        since=np.concatenate([_tokens_since(arm) for arm in loaded]),
        constant_rate=all(_constant_rate(arm.arm) for arm in loaded),
    )


def _tokens_since(arm: LoadedArm) -> Floats:
    """Return the number of tokens read after the last copy of each example."""
    last: dict[str, float] = {}
    log = read_log(arm.arm.training) if arm.arm.training else []
    if arm.arm.training and log:
        columns = ["example_id", "status", "intact", "tokens_before"]
        for row in read_exposures(arm.arm.training, columns=columns).to_pylist():
            if row["status"] != NEVER and row["intact"]:
                name = row["example_id"]
                last[name] = max(last.get(name, 0.0), float(row["tokens_before"]))
    since = {name: max(log[-1].tokens - tokens, 0.0) for name, tokens in last.items()}
    return np.array([since.get(example.example_id, np.nan) for example in arm.examples])


def _constant_rate(arm: Arm) -> bool:
    if arm.training is None:
        return False
    rates = [row.lr for row in read_log(arm.training)]
    return bool(rates) and max(rates) - min(rates) <= 1e-9 * max(rates)
