"""How the AUC responds to each factor: a line for each detector, dataset and arm.

Factors: copies (log2(1 + copies)), swept numbers such as corpus.tokens and train.lr (log2), the
length of the texts, and the tokens read since a text's last copy. Texts of a length are compared
with non-members of the same length. Texts are dealt into parts by tokens since within their
numbers of copies, so the parts have equal doses; where the learning rate changed during
training, early and late texts were learnt at different rates, and there is no such line.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from analysis.arm import Cohort
from analysis.factors.joint import stack_aucs
from analysis.factors.lines import Line, fit_line
from analysis.factors.study import (
    ArmAucs,
    CellsOf,
    SeedRows,
    Study,
    StudyArm,
    by_dataset,
    quantile_cells,
)
from analysis.intervals.influence import Mask
from analysis.metrics import Floats

COPIES = "copies"
LENGTH = "length"
SINCE = "tokens since the last copy"
_LEAST_SPREAD = 0.5
"""Texts whose lengths lie within less than half a doubling say nothing of length."""
ValuesOf = Callable[[SeedRows], Floats]


class Response(NamedTuple):
    """One detector's line against one factor."""

    cohort: Cohort
    """The arm; where the line goes over several, the axis that they differ in is empty."""
    factor: str
    dataset: str
    detector: str
    setting: str
    line: Line | None
    reason: str
    """Why there is none; empty where there is one."""


def copy_responses(
    study: Study, measured: Sequence[ArmAucs], detector: str, *, confidence: float
) -> Iterator[Response]:
    """Yield the lines against copies: of each arm with several doses, and over arms of other doses.

    Args:
        study: all arms.
        measured: the detector in each.
        detector: which.
        confidence: coverage asked for.
    """
    for arm, one in zip(study.arms, measured, strict=True):
        if len(one.dose_x) > 1:
            for dataset, aucs in one.doses.items():
                line = fit_line(aucs, one.dose_x, confidence=confidence)
                yield _response(arm.cohort, COPIES, dataset, detector, arm.settings[detector], line)
    for axis in swept_axes(study):
        if axis.split(".")[0] != COPIES:
            continue
        for cohort, at in arm_families(study, axis).items():
            x = np.concatenate([measured[k].dose_x for k in at])
            setting = _setting_of(study, at, detector)
            for dataset in measured[at[0]].doses:
                several = [measured[k].doses[dataset] for k in at if dataset in measured[k].doses]
                if len(several) == len(at) and x.size:
                    line = fit_line(stack_aucs(several), x, confidence=confidence)
                    yield _response(cohort, COPIES, dataset, detector, setting, line)


def axis_responses(
    study: Study, measured: Sequence[ArmAucs], detector: str, *, confidence: float
) -> Iterator[Response]:
    """Yield the lines against each swept number, all members with a copy."""
    for axis in swept_axes(study):
        values = axis_numbers(study, axis)
        if values is None or axis.split(".")[0] == COPIES:
            continue
        for cohort, at in arm_families(study, axis).items():
            x = np.log2(np.array([values[k] for k in at]))
            setting = _setting_of(study, at, detector)
            for dataset in measured[at[0]].every:
                several = [measured[k].every[dataset] for k in at if dataset in measured[k].every]
                if len(several) == len(at):
                    line = fit_line(
                        stack_aucs(several), x, confidence=confidence, start=-float("inf")
                    )
                    yield _response(cohort, axis, dataset, detector, setting, line)


def row_responses(
    study: Study, arm: StudyArm, detector: str, *, confidence: float
) -> Iterator[Response]:
    """Yield the lines against what differs between the texts of one arm."""
    setting = arm.settings[detector]

    def by_length(rows: SeedRows) -> list[Mask]:
        # Members without a copy have not been seen: they belong to no part.
        usable = rows.held(detector) & (~rows.member | (rows.copies > 0))
        return quantile_cells(rows.length, usable, rows.dataset)

    def by_since(rows: SeedRows) -> list[Mask]:
        usable = rows.held(detector) & rows.member & np.isfinite(rows.since) & (rows.copies > 0)
        strata = rows.copies * (rows.dataset.max(initial=0) + 1) + rows.dataset
        return quantile_cells(rows.since, usable, strata)

    x = _means(arm, by_length, lambda rows: np.log2(np.maximum(rows.length, 1.0)))
    if np.isfinite(x).all() and np.ptp(x) > _LEAST_SPREAD:
        for dataset, aucs in by_dataset(study, arm, detector, by_length, both=True).items():
            line = fit_line(aucs, x, confidence=confidence, start=0.0)
            yield _response(arm.cohort, LENGTH, dataset, detector, setting, line)
    x = _means(arm, by_since, lambda rows: np.log2(1.0 + rows.since))
    if not np.isfinite(x).all():
        return
    for dataset, aucs in by_dataset(study, arm, detector, by_since).items():
        line = (
            fit_line(aucs, x, confidence=confidence)
            if arm.constant_rate
            else "the learning rate changed: texts seen early were learnt at another rate"
        )
        yield _response(arm.cohort, SINCE, dataset, detector, setting, line)


def axis_numbers(study: Study, axis: str) -> list[float] | None:
    """Return the arms' values of an axis; None where one is no positive number."""
    try:
        found = [float(arm.axis(axis)) for arm in study.arms]
    except ValueError:
        return None
    return found if all(isfinite(value) and value > 0 for value in found) else None


def doubled(factor: str) -> str:
    """Return what a slope is for each doubling of."""
    if factor in (COPIES, SINCE):
        return f"1 + {factor}"
    return "the length" if factor == LENGTH else factor


def factor_value(factor: str, x: float) -> float:
    """Return a place of a line's axis in the factor's own unit."""
    if x > 1000:
        return float("inf")
    return 2**x - 1 if factor in (COPIES, SINCE) else 2**x


def swept_axes(study: Study) -> list[str]:
    """Return the dotted keys that the arms differ in."""
    return [name for name, _ in study.arms[0].cohort.axes] if study.arms else []


def arm_families(study: Study, axis: str) -> Mapping[Cohort, list[int]]:
    """Return the arms that differ in one axis alone, two or more, by what they share."""
    found: dict[Cohort, list[int]] = {}
    for k, arm in enumerate(study.arms):
        rest = tuple((name, "" if name == axis else value) for name, value in arm.cohort.axes)
        found.setdefault(arm.cohort._replace(axes=rest), []).append(k)
    return {cohort: at for cohort, at in found.items() if len(at) > 1}


def _means(arm: StudyArm, cells: CellsOf, of: ValuesOf) -> Floats:
    """Return the mean place of each part's members over the seeds; NaN where one has none."""
    means = []
    for rows in arm.seeds:
        parts = [cell & rows.member for cell in cells(rows)]
        if not all(part.any() for part in parts):
            return np.full(1, np.nan)
        value = of(rows)
        means.append([float(value[part].mean()) for part in parts])
    return np.mean(np.array(means), axis=0)


def _setting_of(study: Study, at: Sequence[int], detector: str) -> str:
    return " | ".join(dict.fromkeys(study.arms[k].settings[detector] for k in at))


def _response(
    cohort: Cohort, factor: str, dataset: str, detector: str, setting: str, line: Line | str
) -> Response:
    if isinstance(line, str):
        return Response(cohort, factor, dataset, detector, setting, None, line)
    return Response(cohort, factor, dataset, detector, setting, line, "")
