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
from analysis.factors.joint import Aucs, Joint, join_seeds
from analysis.factors.responses import arm_families, axis_numbers, swept_axes
from analysis.factors.study import ArmAucs, SeedRows, Study, StudyArm, by_dataset
from analysis.intervals.ends import LEAST_GROUPS
from analysis.intervals.influence import Mask
from analysis.metrics import Floats
from analysis.tables import POOLED


class Contrast(NamedTuple):
    """One difference."""

    value: float
    low: float
    """Of the band that holds the whole family."""
    high: float
    alone_low: float
    """Of the interval of this difference for itself."""
    alone_high: float
    p_value: float
    """Corrected for the family."""
    seeds: int
    members: int
    """Members behind it, over the seeds: those of the arm with fewer."""
    reason: str
    """Why there is no interval; empty where there is one."""

    def columns(self) -> dict[str, Any]:
        """Return the difference as columns of a finding."""
        values = self._asdict()
        counts = {"n_members": values.pop("members"), "n_seeds": values.pop("seeds")}
        return {**values, **counts}


def difference_of(one: Aucs, other: Aucs) -> Joint:
    """Return `one - other` of K AUCs each, seed by seed; seeds that lack either are left out."""
    there = _both(one, other)
    return join_seeds((one.value - other.value)[there], (one.influence - other.influence)[there])


def contrasts(pairs: Sequence[tuple[Aucs, Aucs]], *, confidence: float = 0.95) -> list[Contrast]:
    """Return the difference of each pair of single AUCs, as one family.

    Args:
        pairs: two AUCs (K = 1) of the same seeds.
        confidence: that the band holds all differences.
    """
    from scipy.stats import t

    found = [(pair, difference_of(*pair)) for pair in pairs]
    reasons = [_reason(pair, joint) for pair, joint in found]
    number = reasons.count("")
    made = []
    for (pair, joint), reason in zip(found, reasons, strict=True):
        value, error, freedom = (
            float(part[0]) for part in (joint.value, joint.error, joint.freedom)
        )
        band = alone = p_value = float("nan")
        if not reason:
            alone, band = (
                float(t.isf((1 - confidence) / 2 / count, freedom)) * error for count in (1, number)
            )
            p_value = min(1.0, float(2 * t.sf(abs(value) / error, freedom)) * number)
        made.append(
            Contrast(
                value,
                value - band,
                value + band,
                value - alone,
                value + alone,
                p_value,
                joint.seeds,
                _members(*pair),
                reason,
            )
        )
    return made


def _both(one: Aucs, other: Aucs) -> Mask:
    """Return the seeds in which both have all their values."""
    return np.asarray(np.isfinite(one.value - other.value).all(axis=1), dtype=bool)


def _members(one: Aucs, other: Aucs) -> int:
    there = _both(one, other)
    return int(min(one.members[there].sum(), other.members[there].sum()))


def _reason(pair: tuple[Aucs, Aucs], joint: Joint) -> str:
    if not joint.seeds:
        return "no seed has both"
    fewest = int(min(one.groups.min() for one in pair))
    if fewest < LEAST_GROUPS:
        return f"{fewest} {'group' if fewest == 1 else 'groups'} on one side"
    if joint.error[0] <= 1e-9:
        return "the rows do not differ"
    return ""


class Comparison(NamedTuple):
    """The difference of one arm to another in one axis."""

    cohort: Cohort
    """What both share; the axis in question is empty."""
    axis: str
    level: str
    versus: str
    dataset: str
    detector: str
    setting: str
    contrast: Contrast


class ArmPair(NamedTuple):
    """Two arms, by number, that differ in one axis alone."""

    cohort: Cohort
    axis: str
    one: int
    other: int


def compare_arms(
    study: Study, measured: Sequence[ArmAucs], detector: str, *, confidence: float
) -> Iterator[Comparison]:
    """Yield all comparisons of one detector; those of one dataset are one family.

    Args:
        study: all arms.
        measured: the detector in each.
        detector: which.
        confidence: that all differences of a family lie within their bands.
    """
    pairs = list(arm_pairs(study))
    for dataset in (POOLED, *study.datasets):
        usable = [
            pair
            for pair in pairs
            if dataset in measured[pair.one].every and dataset in measured[pair.other].every
        ]
        if not usable:
            continue
        found = contrasts(
            [(measured[p.one].every[dataset], measured[p.other].every[dataset]) for p in usable],
            confidence=confidence,
        )
        for pair, contrast in zip(usable, found, strict=True):
            settings = (study.arms[k].settings[detector] for k in (pair.one, pair.other))
            yield Comparison(
                pair.cohort,
                pair.axis,
                study.arms[pair.one].axis(pair.axis),
                study.arms[pair.other].axis(pair.axis),
                dataset,
                detector,
                " | ".join(dict.fromkeys(settings)),
                contrast,
            )


def arm_pairs(study: Study) -> Iterator[ArmPair]:
    """Yield each value of each axis with the axis's first value, all else being equal."""
    for axis in swept_axes(study):
        numbers = axis_numbers(study, axis)
        for cohort, at in arm_families(study, axis).items():
            order = at if numbers is None else sorted(at, key=lambda k: numbers[k])
            for k in order[1:]:
                yield ArmPair(cohort, axis, k, order[0])


BOUNDS = ("reference", *sorted(UPPER_BOUNDS))
"""What stands above the others: `reference` asks a model that saw no copy where the run has one."""


BEST = "best"
GAP = "gap"
Row = dict[str, Any]


def compare_detectors(study: Study, arm: StudyArm, *, confidence: float) -> Iterator[Row]:
    """Yield the contestants of one arm in each dataset, and their gaps to its upper bounds.

    Args:
        study: all arms.
        arm: which.
        confidence: of each set, and of each family of gaps.
    """

    def every(rows: SeedRows) -> list[Mask]:
        return [rows.member & (rows.copies > 0)]

    measured = {name: by_dataset(study, arm, name, every) for name in study.detectors}
    for dataset in dict.fromkeys(name for one in measured.values() for name in one):
        head = {**arm.cohort.columns(), "dataset": dataset}
        here = _same_rows({name: one[dataset] for name, one in measured.items() if dataset in one})
        contestants = {name: one for name, one in here.items() if name not in UPPER_BOUNDS}
        if len(contestants) > 1:
            inside = best_set(list(contestants.values()), confidence=confidence)
            if inside is not None:
                yield from ({**head, **row} for row in _best_rows(contestants, inside))
        for bound in (name for name in BOUNDS if name in here):
            others = [name for name in contestants if name != bound]
            if others:
                gaps = contrasts(
                    [(here[bound], here[name]) for name in others], confidence=confidence
                )
                for name, gap in zip(others, gaps, strict=True):
                    row = {"kind": GAP, "detector": name, "versus": bound, "term": "difference"}
                    yield {**head, **row, **gap.columns()}


def best_set(aucs: Sequence[Aucs], *, confidence: float) -> list[bool] | None:
    """Say which AUCs (K = 1 each) cannot be distinguished from the largest; None without groups.

    Args:
        aucs: of the same rows and seeds.
        confidence: that the truly largest is among them.
    """
    values = np.concatenate([one.value for one in aucs], axis=1)
    influence = np.concatenate([one.influence for one in aucs], axis=1)
    there = np.isfinite(values).all(axis=1)
    if not there.any() or min(int(one.groups[there].min()) for one in aucs) < LEAST_GROUPS:
        return None
    values, influence = values[there], influence[there]
    return [_may_be_best(values, influence, at, confidence) for at in range(values.shape[1])]


def _may_be_best(values: Floats, influence: Floats, at: int, confidence: float) -> bool:
    """Say whether nothing is above one detector by more than chance."""
    from scipy.stats import t

    others = [k for k in range(values.shape[1]) if k != at]
    joint = join_seeds(
        values[:, others] - values[:, [at]], influence[:, others] - influence[:, [at]]
    )
    error = joint.error
    same = error <= 1e-12
    # Two detectors of the same scores are one.
    if (joint.value[same] > 1e-12).any():
        return False
    if same.all():
        return True
    chance = t.sf(joint.value[~same] / error[~same], joint.freedom[~same]).min()
    return bool(chance * len(others) >= 1 - confidence)


def _same_rows(found: Mapping[str, Aucs]) -> dict[str, Aucs]:
    """Return the detectors that are measured on the rows that most are measured on."""
    rows = {
        name: tuple(np.concatenate([one.members[:, 0], one.nonmembers[:, 0]]).tolist())
        for name, one in found.items()
    }
    counted = list(rows.values())
    most = max(counted, key=lambda key: (counted.count(key), key))
    return {name: one for name, one in found.items() if rows[name] == most}


def _best_rows(contestants: Mapping[str, Aucs], inside: Sequence[bool]) -> Iterator[Row]:
    """Yield the contestants, best first; says of each whether it may be the best."""
    held = dict(zip(contestants, inside, strict=True))
    values = {name: float(np.nanmean(one.value)) for name, one in contestants.items()}
    first = next(iter(contestants.values()))
    for name, value in sorted(values.items(), key=lambda item: -item[1]):
        yield {
            "kind": BEST,
            "detector": name,
            "term": "auc",
            "value": value,
            "n_members": int(first.members.sum()),
            "n_seeds": int(np.isfinite(first.value[:, 0]).sum()),
            "shown": "may be the best" if held[name] else "",
        }
