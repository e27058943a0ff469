"""What is compared in a study: arms with arms, and the detectors of one arm with each other.

Arms: each value of a swept axis with the first, all else being equal.

Comparisons with the best (Hsu 1984): a detector belongs to the set where no other is above it by
more than chance, corrected for how many others there are (Bonferroni), were it the best itself. The
set so holds the truly best one with the confidence asked for, however many are compared; each arm
and dataset is a statement of its own. Gaps: how far an upper bound (shadow models, a reference
model) lies above each detector, as one family of paired differences.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import UPPER_BOUNDS, Cohort
from analysis.factors.study import Study, StudyArm
from analysis.intervals.ends import ALIKE, LEAST_GROUPS
from analysis.intervals.joint import BySeed, Joint
from analysis.intervals.numbers import Numbers, beside
from analysis.tables import POOLED

CONTRAST = "contrast"
BEST = "best"
GAP = "gap"
BOUNDS = ("reference", *sorted(UPPER_BOUNDS))
"""What stands above the others: `reference` asks a model that saw no copy where the run has one."""
Row = dict[str, Any]


class ArmPair(NamedTuple):
    """Two arms, by number, that differ in one axis alone."""

    cohort: Cohort
    """What both share; the axis in question is empty."""
    axis: str
    one: int
    other: int


def arm_pairs(study: Study) -> Iterator[ArmPair]:
    """Yield each value of each axis with the axis's first value, all else being equal."""
    for axis in study.axes:
        numbers = study.axis_numbers(axis)
        for cohort, at in study.families(axis).items():
            order = at if numbers is None else sorted(at, key=numbers.__getitem__)
            for k in order[1:]:
                yield ArmPair(cohort, axis, k, order[0])


def contrasts(pairs: Sequence[tuple[Numbers, Numbers]], *, confidence: float = 0.95) -> list[Row]:
    """Return the difference of each pair of single numbers, as one family.

    Args:
        pairs: two numbers (K = 1) of the same seeds; seeds that lack either are left out.
        confidence: that the band holds all differences.

    Returns:
        Columns of findings: the ends of the band that holds the whole family, those of each
        difference for itself, and the p-value, corrected for the family.
    """
    from scipy.stats import t

    both = [beside(pair).by_seed().shared() for pair in pairs]
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
                "alone_low": value - alone,
                "alone_high": value + alone,
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


def compare_arms(
    study: Study, every: Sequence[Numbers], detector: str, *, confidence: float
) -> Iterator[Row]:
    """Yield all differences of one detector between arms; those of one dataset are one family.

    Args:
        study: all arms.
        every: the detector's AUC of all members with a copy, in each arm.
        detector: which.
        confidence: that all differences of a family lie within their bands.
    """
    pairs = list(arm_pairs(study))
    for dataset in (POOLED, *study.datasets):
        name = None if dataset == POOLED else dataset
        numbers = [one.of(name) for one in every]
        usable = [p for p in pairs if all(any(numbers[k].seeds) for k in (p.one, p.other))]
        rows = contrasts(
            [(numbers[pair.one], numbers[pair.other]) for pair in usable], confidence=confidence
        )
        for pair, row in zip(usable, rows, strict=True):
            yield {
                **pair.cohort.columns(),
                "kind": CONTRAST,
                "factor": pair.axis,
                "dataset": dataset,
                "detector": detector,
                "setting": study.setting((pair.one, pair.other), detector),
                "level": study.arms[pair.one].axis(pair.axis),
                "versus": study.arms[pair.other].axis(pair.axis),
                **row,
            }


def compare_detectors(
    study: Study, arm: StudyArm, every: Mapping[str, Numbers], *, confidence: float
) -> Iterator[Row]:
    """Yield the contestants of one arm in each dataset, and their gaps to its upper bounds.

    Args:
        study: all arms.
        arm: which.
        every: the AUC of all members with a copy, by detector.
        confidence: of each set, and of each family of gaps.
    """
    for dataset in (POOLED, *study.datasets):
        name = None if dataset == POOLED else dataset
        numbers = _same_rows({key: one.of(name) for key, one in every.items()})
        head = {**arm.cohort.columns(), "dataset": dataset}
        contestants = [key for key in numbers if key not in UPPER_BOUNDS]
        if len(contestants) > 1:
            rows = _best_rows({key: numbers[key] for key in contestants}, confidence)
            yield from ({**head, **row} for row in rows)
        for bound in (key for key in BOUNDS if key in numbers):
            others = [key for key in contestants if key != bound]
            gaps = contrasts(
                [(numbers[bound], numbers[key]) for key in others], confidence=confidence
            )
            for key, gap in zip(others, gaps, strict=True):
                yield {**head, "kind": GAP, "detector": key, "versus": bound, **gap}


def _same_rows(numbers: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Return the detectors that are measured on the rows that most are measured on."""
    rows = {}
    for name, one in numbers.items():
        by_seed = one.by_seed()
        if np.isfinite(by_seed.value).any():
            counts = np.concatenate([by_seed.members[:, 0], by_seed.nonmembers[:, 0]])
            rows[name] = tuple(counts.tolist())
    counted = list(rows.values())
    most = max(counted, key=lambda key: (counted.count(key), key), default=())
    return {name: numbers[name] for name in rows if rows[name] == most}


def best_set(numbers: Sequence[Numbers], *, confidence: float) -> list[bool] | None:
    """Say which numbers (K = 1 each) cannot be distinguished from the largest.

    Args:
        numbers: of the same rows and seeds.
        confidence: that the truly largest is among them.

    Returns:
        None if there are too few groups.
    """
    by_seed = beside(numbers).by_seed().shared()
    if by_seed.groups.min(initial=LEAST_GROUPS) < LEAST_GROUPS or not len(by_seed.value):
        return None
    return [_may_be_best(by_seed, at, confidence) for at in range(len(numbers))]


def _may_be_best(by_seed: BySeed, at: int, confidence: float) -> bool:
    """Say whether nothing is above one number by more than chance."""
    from scipy.stats import t

    every = np.eye(by_seed.value.shape[1])
    joint = by_seed.covariance(np.delete(every - every[at], at, axis=0))
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
    """Yield the contestants, best first; says of each whether it may be the best."""
    inside = best_set(list(contestants.values()), confidence=confidence)
    by_seed = {name: numbers.by_seed() for name, numbers in contestants.items()}
    values = {name: float(np.nanmean(one.value)) for name, one in by_seed.items()}
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
