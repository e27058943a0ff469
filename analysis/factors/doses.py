"""How the AUC responds to each factor: a line on the probit scale (`lines`) for each.

Factors: copies (log2(1 + copies)), swept numbers such as corpus.tokens and train.lr (log2), the
length of the texts, and the tokens read since a text's last copy. Texts of a length are compared
with non-members of the same length. Texts are divided into parts by tokens since within their
numbers of copies, so the parts have equal doses; if the learning rate changed during
training, early and late texts were learnt at different rates, and there is no such line.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import Cohort
from analysis.copy_bins import copies_cells, is_dose
from analysis.factors.lines import FittedLine, fit_line
from analysis.factors.study import Study, StudyArm
from analysis.intervals.fieller import ThresholdCrossing, reach_text
from analysis.intervals.influence import Counts, Floats, Mask
from analysis.intervals.numbers import Numbers, join_numbers

RESPONSE = "response"
COPIES = "copies"
LENGTH = "length"
SINCE = "tokens since the last copy"
PARTS = 4
"""Number of equal parts into which texts are divided by length, or by tokens since."""
_LEAST_SPREAD = 0.5
"""If text lengths span less than half a doubling, no effect of length is estimated."""


class Measured(NamedTuple):
    """One detector in one arm."""

    every: Numbers
    """The AUC of all members with a copy."""
    doses: Numbers
    """By number of copies."""
    x: Floats
    """log2(1 + copies) of each dose, a mean if several counts share a bin."""


def measure_arms(study: Study, detector: str) -> list[Measured]:
    """Return one detector in every arm; doses with too few members over all seeds are left out."""
    measured, settings = [], study.settings
    for arm in study.arms:
        counts = arm.copies[arm.rows.member & arm.held(detector)]
        doses = [
            cell
            for cell in copies_cells(counts.tolist(), high_copies=settings.high_copies)
            if is_dose(cell.label) and cell.holds(counts).sum() >= settings.min_members
        ]
        within = [arm.copies > 0, *(cell.holds(arm.copies) for cell in doses)]
        numbers = study.aucs(arm, detector, np.array(within))
        places = np.arange(len(within))
        x = np.array([np.log2(1.0 + counts[cell.holds(counts)]).mean() for cell in doses])
        measured.append(Measured(numbers.at(places[:1]), numbers.at(places[1:]), x))
    return measured


class Response(NamedTuple):
    """One detector's line against one factor."""

    cohort: Cohort
    """The arm; if the line spans several, the axis that they differ in is empty."""
    factor: str
    dataset: str
    detector: str
    setting: str
    line: FittedLine | str
    """Or why there is none."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield findings: the slope, where it reaches its level, whether it fits, the points."""
        head = {**self.cohort.columns(), "kind": RESPONSE, **self._asdict()}
        line = head.pop("line")
        del head["cohort"]
        if isinstance(line, str):
            yield {**head, "term": "slope", "reason": line}
            return
        ends = [end for stretch in line.reach.places for end in stretch]
        places = (line.reach.value, min(ends, default=inf), max(ends, default=inf))
        value, low, high = (factor_value(self.factor, place) for place in places)
        terms: dict[str, dict[str, Any]] = {
            "slope": {
                "value": line.slope, "low": line.low, "high": line.high, "p_value": line.p_value
            },
            "intercept": {"value": line.intercept},
            "misfit": {"p_value": line.misfit_p},
            "reach": {"value": value, "low": low, "high": high, "shown": shown_reach(self)},
        }  # fmt: skip
        members = int(line.points.members.sum())
        for term, columns in terms.items():
            counts = {"n_members": members, "n_seeds": line.seeds}
            yield {**head, **counts, "term": term, **columns}
        points = zip(*(column.tolist() for column in line.points), strict=True)
        for x, auc, low, high, count in sorted(points, key=lambda point: point[0]):
            counts = {"n_members": int(count), "n_seeds": line.seeds}
            place = {"x": factor_value(self.factor, x), "value": auc, "low": low, "high": high}
            yield {**head, **counts, "term": "point", **place}


def find_responses(study: Study, measured: Sequence[Measured], detector: str) -> Iterator[Response]:
    """Yield all lines of one detector.

    Args:
        study: all arms.
        measured: the detector in each.
        detector: which.
    """
    yield from copy_responses(study, measured, detector)
    for axis in study.axes:
        values = study.axis_numbers(axis)
        if values is None or is_copies(axis):
            continue
        for cohort, at in study.families(axis).items():
            numbers = join_numbers([measured[k].every for k in at])
            x = np.log2(np.array([values[k] for k in at]))
            place = (cohort, axis, detector, study.setting(at, detector))
            yield from _fit_datasets(study, numbers, x, place, start=-inf)
    for arm in study.arms:
        yield from _row_responses(study, arm, detector)


def copy_responses(study: Study, measured: Sequence[Measured], detector: str) -> Iterator[Response]:
    """Yield the lines against copies: of each arm with several doses, and over arms of other doses.

    Arguments as for `find_responses`.
    """
    families = [(arm.cohort, [k]) for k, arm in enumerate(study.arms) if len(measured[k].x) > 1]
    for axis in filter(is_copies, study.axes):
        families += study.families(axis).items()
    for cohort, at in families:
        several = [measured[k] for k in at if len(measured[k].x)]
        if not several:
            continue
        numbers = join_numbers([arm.doses for arm in several])
        x = np.concatenate([arm.x for arm in several])
        place = (cohort, COPIES, detector, study.setting(at, detector))
        yield from _fit_datasets(study, numbers, x, place)


def _row_responses(study: Study, arm: StudyArm, detector: str) -> Iterator[Response]:
    """Yield the lines against what differs between the texts of one arm."""
    rows, setting = arm.rows, arm.settings[detector]
    seen = arm.held(detector) & rows.member & (arm.copies > 0)
    stratum = np.zeros(len(seen), dtype=np.int64)
    for number, at in enumerate(at for seed in rows.places for at in seed.values()):
        stratum[at] = number
    # Members without a copy have not been seen: they belong to no part.
    usable = seen | (rows.nonmember & arm.held(detector))
    cells = quantile_cells(arm.length, usable, stratum)
    x = _places(arm, cells & seen, np.log2(np.maximum(arm.length, 1.0)))
    if np.isfinite(x).all() and np.ptp(x) > _LEAST_SPREAD:
        sides = [replace(rows, member=rows.member & c, nonmember=rows.nonmember & c) for c in cells]
        numbers = join_numbers([study.aucs(arm, detector, rows=side) for side in sides])
        place = (arm.cohort, LENGTH, detector, setting)
        yield from _fit_datasets(study, numbers, x, place)
    dose = arm.copies * (stratum.max(initial=0) + 1) + stratum
    cells = quantile_cells(arm.since, seen & np.isfinite(arm.since), dose)
    x = _places(arm, cells, np.log2(1.0 + arm.since))
    if not np.isfinite(x).all():
        return
    numbers, place = study.aucs(arm, detector, cells), (arm.cohort, SINCE, detector, setting)
    changed = "the learning rate changed: texts seen early were learnt at another rate"
    why = "" if arm.constant_rate else changed
    yield from _fit_datasets(study, numbers, x, place, why=why)


Place = tuple[Cohort, str, str, str]
"""Arm, factor, detector and setting."""


def _fit_datasets(
    study: Study, numbers: Numbers, x: Floats, place: Place, start: float = 0.0, why: str = ""
) -> Iterator[Response]:
    """Yield the line of each dataset, or why there is none.

    Args:
        study: all arms.
        numbers: the AUCs.
        x: the position of each.
        place: of the lines.
        start: the least x that has a meaning.
        why: there is no line; empty if there may be.
    """
    cohort, factor, detector, setting = place
    for dataset, aucs in study.by_dataset(numbers):
        line = why or fit_line(aucs, x, confidence=study.settings.confidence, start=start)
        yield Response(cohort, factor, dataset, detector, setting, line)


def quantile_cells(values: Floats, which: Mask, strata: Counts) -> Mask:
    """Divide rows into parts of rising value, with equal numbers per stratum: [parts, rows].

    Args:
        values: what they are divided by, [rows].
        which: the rows to divide; the others are in no part.
        strata: rows of each stratum are divided separately, [rows].
    """
    part = np.full(len(values), -1)
    for stratum in np.unique(strata[which]):
        at = np.flatnonzero(which & (strata == stratum))
        order = np.argsort(values[at], kind="stable")
        part[at[order]] = np.arange(len(at)) * PARTS // len(at)
    return part == np.arange(PARTS)[:, None]


def _places(arm: StudyArm, cells: Mask, values: Floats) -> Floats:
    """Return the mean value of each part, a mean of its seeds'; NaN if one has no row."""
    seeds = arm.rows.seed == np.arange(len(arm.seeds))[:, None]
    within = cells & seeds[:, None]
    with np.errstate(invalid="ignore"):
        means = np.where(within, values, 0.0).sum(axis=2) / within.sum(axis=2)
    return np.asarray(means.mean(axis=0))


def is_copies(axis: str) -> bool:
    """Return whether a swept axis is a copy count."""
    return axis.split(".")[0] == COPIES


def doubled(factor: str) -> str:
    """Return the quantity whose doubling a slope refers to."""
    if factor in (COPIES, SINCE):
        return f"1 + {factor}"
    return "the length" if factor == LENGTH else factor


def factor_value(factor: str, x: float) -> float:
    """Return a place of a line's axis in the factor's own unit."""
    if x > 1000:
        return inf
    return 2**x - 1 if factor in (COPIES, SINCE) else 2**x


def shown_reach(response: Response) -> str:
    """Return the point at which the line reaches its level, as the page shows it."""
    line = response.line
    if isinstance(line, str):
        return ""

    def moved(place: float) -> float:
        return factor_value(response.factor, place)

    reach = ThresholdCrossing(
        moved(line.reach.value),
        tuple((moved(low), moved(high)) for low, high in line.reach.places),
    )
    x = line.points.x
    return reach_text(
        reach, smallest=moved(float(x.min())), largest=moved(float(x.max())), written=short_number
    )


def short_number(value: float) -> str:
    """Return a number of copies, tokens or a rate, as short as it can be read."""
    if value >= 10_000:
        return f"{value:,.0f}" if value < 1e6 else f"{value:.3g}"
    return f"{value:.0f}" if value >= 20 or value == round(value) else f"{value:.2g}"
