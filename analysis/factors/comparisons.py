"""Which arms are compared: each value of a swept axis with the first, all else being equal."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from analysis.arm import Cohort
from analysis.factors.contrasts import Contrast, contrasts
from analysis.factors.measured import ArmAucs
from analysis.factors.responses import arm_families, axis_numbers, swept_axes
from analysis.factors.study import Study
from analysis.tables import POOLED


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
