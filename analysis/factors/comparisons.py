"""Which arms are compared: each value of a swept axis with the first, all else being equal."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import Cohort
from analysis.factors.joint import Aucs, Joint, join_seeds
from analysis.factors.measured import ArmAucs
from analysis.factors.responses import arm_families, axis_numbers, swept_axes
from analysis.factors.study import Study
from analysis.intervals.bounds import LEAST_GROUPS
from analysis.intervals.influence import Mask
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
