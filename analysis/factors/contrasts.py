"""The comparisons of a study: arms with arms, and the detectors of one arm with each other.

Arms: each value of a swept axis with the first, all else being equal.

Comparisons with the best (Hsu 1984): a detector belongs to the set where no other is above it by
more than chance, corrected for how many others there are (Bonferroni), were it the best itself. The
set so contains the truly best one with the requested confidence, however many are compared; each
arm and dataset is a separate statement. Gaps: how far an upper bound (shadow models, a reference
model) is above each detector, as one family of paired differences.

`analyse_factors` puts these, the lines and the variances into one table. Cost: a detector takes
about 5 ms an arm, seed and dataset; a study of one arm and nine detectors a second.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arm import UPPER_BOUNDS, Arm, Cohort, axis_names
from analysis.factors.doses import find_responses, measure_arms
from analysis.factors.power import variance_components
from analysis.factors.study import Study, StudyArm, collect_study
from analysis.findings import COLUMNS, QUESTIONS, question_table
from analysis.intervals.ends import ALIKE, LEAST_GROUPS
from analysis.intervals.joint import BySeed, Joint
from analysis.intervals.numbers import Numbers, join_numbers
from analysis.metrics import POOLED
from analysis.selection.tuning import Choice
from analysis.settings import AnalysisSettings

CONTRAST = "contrast"
BEST = "best"
GAP = "gap"
BOUNDS = ("reference", *sorted(UPPER_BOUNDS))
"""Upper bounds: `reference` uses a model that saw no copy, if the run has one."""
Row = dict[str, Any]


def contrasts(pairs: Sequence[tuple[Numbers, Numbers]], *, confidence: float = 0.95) -> list[Row]:
    """Return the difference of each pair of single numbers, as one family.

    Args:
        pairs: two numbers (K = 1) of the same seeds; seeds that lack either are left out.
        confidence: that the band contains all differences.

    Returns:
        Columns of findings: the ends of the band that contains the whole family, those of each
        difference for itself, and the p-value, corrected for the family.
    """
    from scipy.stats import t

    both = [join_numbers(pair).by_seed().shared() for pair in pairs]
    joints = [by_seed.covariance(np.array([[1.0, -1.0]])) for by_seed in both]
    reasons = [_reason(*each) for each in zip(both, joints, strict=True)]
    number = reasons.count("")
    rows: list[Row] = []
    for by_seed, joint, reason in zip(both, joints, reasons, strict=True):
        value, error, freedom = float(joint.value[0]), float(joint.error[0]), joint.freedom[0]
        row: Row = {"value": value, "n_members": int(by_seed.members.sum(axis=0).min())}
        rows.append({"term": "difference", **row, "n_seeds": joint.seeds, "reason": reason})
        if not reason:
            tail = (1 - confidence) / 2
            alone, band = (float(t.isf(tail / n, freedom)) * error for n in (1, number))
            rows[-1] |= {
                "low": value - band,
                "high": value + band,
                "pointwise_low": value - alone,
                "pointwise_high": value + alone,
                "p_value": min(1.0, float(2 * t.sf(abs(value) / error, freedom)) * number),
            }
    return rows


def _reason(both: BySeed, joint: Joint) -> str:
    """Return why a difference has no interval; empty if it has one."""
    if not joint.seeds:
        return "no seed has both"
    fewest = int(both.groups.min())
    if fewest < LEAST_GROUPS:
        return f"{fewest} {'group' if fewest == 1 else 'groups'} on one side"
    return ALIKE if joint.error[0] <= 1e-9 else ""


def compare_arms(study: Study, aucs_by_arm: Sequence[Numbers], detector: str) -> Iterator[Row]:
    """Yield all differences of one detector between arms; those of one dataset are one family.

    Args:
        study: all arms.
        aucs_by_arm: the detector's AUC of all members with a copy, in each arm.
        detector: which.
    """
    for dataset in (POOLED, *study.datasets):
        name = None if dataset == POOLED else dataset
        numbers = [numbers_of_arm.of(name) for numbers_of_arm in aucs_by_arm]
        usable = [pair for pair in study.pairs() if all(any(numbers[k].seeds) for k in pair[2:])]
        rows = contrasts(
            [(numbers[numbers_of_arm], numbers[other]) for *_, numbers_of_arm, other in usable],
            confidence=study.settings.confidence,
        )
        for (cohort, axis, numbers_of_arm, other), row in zip(usable, rows, strict=True):
            yield {
                **cohort.columns(),
                "kind": CONTRAST,
                "factor": axis,
                "dataset": dataset,
                "detector": detector,
                "setting": study.setting((numbers_of_arm, other), detector),
                "level": study.arms[numbers_of_arm].axis(axis),
                "versus": study.arms[other].axis(axis),
                **row,
            }


def compare_detectors(study: Study, arm: StudyArm, aucs: Mapping[str, Numbers]) -> Iterator[Row]:
    """Yield the contestants of one arm in each dataset, and their gaps to its upper bounds.

    Args:
        study: all arms.
        arm: which.
        aucs: of all members with a copy, by detector.
    """
    confidence = study.settings.confidence
    for dataset in (POOLED, *study.datasets):
        name = None if dataset == POOLED else dataset
        numbers = _same_rows({key: auc.of(name) for key, auc in aucs.items()})
        head = {**arm.cohort.columns(), "dataset": dataset}
        contestants = [key for key in numbers if key not in UPPER_BOUNDS]
        if len(contestants) > 1:
            rows = _best_rows({key: numbers[key] for key in contestants}, confidence)
            yield from ({**head, **row} for row in rows)
        for bound in (key for key in BOUNDS if key in numbers):
            others = [key for key in contestants if key != bound]
            pairs = [(numbers[bound], numbers[key]) for key in others]
            gaps = contrasts(pairs, confidence=confidence)
            for key, gap in zip(others, gaps, strict=True):
                yield {**head, "kind": GAP, "detector": key, "versus": bound, **gap}


def _same_rows(numbers: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return the detectors that are measured on the rows that most are measured on."""
    rows = {}
    for name, seeds in numbers.items():
        by_seed = seeds.by_seed()
        if np.isfinite(by_seed.value).any():
            counts = np.concatenate([by_seed.members[:, 0], by_seed.nonmembers[:, 0]])
            rows[name] = tuple(counts.tolist())
    counted = list(rows.values())
    most = max(counted, key=lambda key: (counted.count(key), key), default=())
    return {name: numbers[name] for name in rows if rows[name] == most}


def best_set(numbers: Sequence[Numbers], *, confidence: float) -> list[bool] | None:
    """Return, for each number (K = 1), whether it is indistinguishable from the largest.

    Args:
        numbers: of the same rows and seeds.
        confidence: that the truly largest is among them.

    Returns:
        None if there are too few groups.
    """
    by_seed = join_numbers(numbers).by_seed().shared()
    if by_seed.groups.min(initial=LEAST_GROUPS) < LEAST_GROUPS or not len(by_seed.value):
        return None
    return [_may_be_best(by_seed, at, confidence) for at in range(len(numbers))]


def _may_be_best(by_seed: BySeed, at: int, confidence: float) -> bool:
    """Return whether no other number is significantly above one number."""
    from scipy.stats import t

    each = np.eye(by_seed.value.shape[1])
    joint = by_seed.covariance(np.delete(each - each[at], at, axis=0))
    error = joint.error
    same = error <= 1e-12
    # Two detectors of the same scores are one.
    if (joint.value[same] > 1e-12).any():
        return False
    if same.all():
        return True
    chance = t.sf(joint.value[~same] / error[~same], joint.freedom[~same]).min()
    return bool(chance * len(error) >= 1 - confidence)


def _best_rows(contestants: Mapping[str, Numbers], confidence: float) -> Iterator[Row]:
    """Yield a row per contestant, best first, with whether it may be the best."""
    inside = best_set(list(contestants.values()), confidence=confidence)
    by_seed = {name: numbers.by_seed() for name, numbers in contestants.items()}
    values = {name: float(np.nanmean(seeds.value)) for name, seeds in by_seed.items()}
    may_be = dict(zip(contestants, inside or (), strict=False))
    first = next(iter(by_seed.values()))
    for name in sorted(may_be, key=lambda name: -values[name]):
        yield {
            "kind": BEST,
            "detector": name,
            "term": "auc",
            "value": values[name],
            "n_members": int(first.members.sum()),
            "n_seeds": int(np.isfinite(first.value[:, 0]).sum()),
            "shown": "may be the best" if may_be[name] else "",
        }


_EMPTY = {pa.string(): "", pa.float64(): nan, pa.int64(): 0}
_BLANK: Row = {name: _EMPTY[COLUMNS[kept]] for name, kept in QUESTIONS["factors"].items()}
"""The values of columns that a row does not set."""


def analyse_factors(
    arms: Sequence[Arm],
    choices: Mapping[Cohort, Sequence[Choice]],
    settings: AnalysisSettings,
    *,
    copies: Iterable[Row] = (),
) -> pa.Table:
    """Analyse the factors of a study; returns the table of what was found.

    Args:
        arms: all models of an experiment.
        choices: the settings chosen in each cohort.
        settings: which rows are compared, and the coverage of intervals.
        copies: what more copies do in each arm (`analysis.tables.dose_rows`).
    """
    study = collect_study(arms, choices, settings)
    rows = [*study_rows(study), *copies]
    return question_table("factors", axis_names(arms), ({**_BLANK, **row} for row in rows))


def study_rows(study: Study) -> Iterator[Row]:
    """Yield the lines, then the differences between arms and detectors, then the variances."""
    measured = {name: measure_arms(study, name) for name in study.detectors}
    for name, arms in measured.items():
        for response in find_responses(study, arms, name):
            yield from response.rows()
    numbers_by_detector = {name: [arm.every for arm in arms] for name, arms in measured.items()}
    for name, numbers in numbers_by_detector.items():
        yield from compare_arms(study, numbers, name)
    for k, arm in enumerate(study.arms):
        of_arm = {name: numbers[k] for name, numbers in numbers_by_detector.items()}
        yield from compare_detectors(study, arm, of_arm)
    for name, numbers in numbers_by_detector.items():
        yield from variance_components(study, numbers, name)
