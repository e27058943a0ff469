"""Rows of all seeds, and the numbers that are made of them: AUC, TPR, mean, share and trend.

Values that are not finite are left out, and so is a dataset without a member. Cost: 1 ms for 200
rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.intervals.clustered import Part
from analysis.intervals.ends import IntervalMethod
from analysis.intervals.influence import (
    Counts,
    Floats,
    Mask,
    Sample,
    Side,
    auc_sample,
    mean_sample,
    tpr_sample,
    trend_sample,
)
from analysis.intervals.joint import leave_out
from analysis.intervals.numbers import Numbers


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of all seeds, one after the other, [n] each."""

    seed: npt.NDArray[Any]
    dataset: npt.NDArray[np.object_]
    group: Counts
    """Number within its dataset, from 0; one group has one number in every seed."""
    member: Mask
    nonmember: Mask
    """Rows that members are compared with; a row may be neither."""
    levels: Counts | None = None
    """Strata of members, if the design fixes the number of groups in each."""

    @classmethod
    def of(cls, group: Counts, *, seed: npt.ArrayLike = "", member: Mask | None = None) -> "Rows":
        """Return rows of one dataset, of which all, or some against the others, are members."""
        inside = np.ones(len(group), dtype=bool) if member is None else member
        return cls(
            seed=np.broadcast_to(np.asarray(seed), group.shape),
            dataset=np.full(len(group), "", dtype=object),
            group=group,
            member=inside,
            nonmember=~inside,
        )

    @cached_property
    def places(self) -> list[dict[str, Counts]]:
        """Places of the rows of each seed, by dataset."""
        seeds = []
        for seed in dict.fromkeys(self.seed.tolist()):
            at = np.flatnonzero(self.seed == seed)
            dataset = self.dataset[at]
            names = dict.fromkeys(dataset.tolist())
            seeds.append({name: at[dataset == name] for name in names})
        return seeds

    @cached_property
    def n_groups(self) -> dict[str, int]:
        """Groups of each dataset over all seeds."""
        names = dict.fromkeys(self.dataset.tolist())
        return {name: int(self.group[self.dataset == name].max()) + 1 for name in names}

    def sides(self, scores: Floats, inside: Counts, outside: Counts) -> tuple[Side, Side]:
        """Return the scores and groups of some members and of some others."""
        return Side(scores[inside], self.group[inside]), Side(scores[outside], self.group[outside])

    def strata(self, inside: Counts) -> Counts | None:
        """Return the strata of some members; None if a group is in two: a copy was cut off."""
        if self.levels is None or not len(inside):
            return None
        pairs = np.unique(np.stack([self.group[inside], self.levels[inside]]), axis=1)
        mixed = len(np.unique(self.group[inside])) < pairs.shape[1]
        return None if mixed else self.levels[inside]


_Sampled = Sample | tuple[Sample, Floats] | None


def auc_numbers(
    rows: Rows,
    scores: Floats,
    within: Mask | None = None,
    *,
    least: int = 2,
    jackknife: bool = False,
) -> Numbers:
    """Return the AUCs of members against the non-members of their own dataset.

    Args:
        rows: of all seeds, [n].
        scores: of each, [n].
        within: which rows each of K numbers is of, [K, n]; None for one number of all members.
        least: groups of non-members below which a dataset has none.
        jackknife: influence is that of leaving out one group at a time (`leave_out`).
    """

    def sample(inside: Counts, outside: Counts, within_cells: Mask, n_groups: int) -> Sample | None:
        if len(np.unique(rows.group[outside])) < least:
            return None
        sides = rows.sides(scores, inside, outside)
        auc = auc_sample(*sides, within_cells, n_groups, rows.strata(inside))
        if not jackknife:
            return auc
        all_nonmembers = np.ones((1, len(outside)), dtype=bool)
        return leave_out(auc, [(sides[0].groups, within_cells), (sides[1].groups, all_nonmembers)])

    return _numbers(rows, scores, within, IntervalMethod.AUC, sample)


def tpr_numbers(rows: Rows, scores: Floats, rate: float, within: Mask | None = None) -> Numbers:
    """Return TPRs at an FPR of at most `rate` to expect; arguments as for `auc_numbers`."""

    def sample(inside: Counts, outside: Counts, within_cells: Mask, n_groups: int) -> Sample | None:
        sides = rows.sides(scores, inside, outside)
        return tpr_sample(*sides, within_cells, n_groups, rate, rows.strata(inside))

    return _numbers(rows, scores, within, IntervalMethod.TPR, sample)


def mean_numbers(
    rows: Rows,
    values: Floats,
    within: Mask | None = None,
    *,
    weights: Floats | None = None,
    scale: IntervalMethod = IntervalMethod.SLOPE,
) -> Numbers:
    """Return means over members; `weights` of the rows, other arguments as for `auc_numbers`."""

    def sample(inside: Counts, _: Counts, within_cells: Mask, n_groups: int) -> Sample:
        own = None if weights is None else weights[inside]
        return mean_sample(values[inside], rows.group[inside], within_cells, n_groups, own)

    return _numbers(rows, values, within, scale, sample)


def share_numbers(
    rows: Rows, values: Floats, within: Mask | None = None, *, weights: Floats | None = None
) -> Numbers:
    """Return means of what is between 0 and 1, and so are their ends; see `mean_numbers`."""
    return mean_numbers(rows, values, within, weights=weights, scale=IntervalMethod.TPR)


def trend_numbers(rows: Rows, values: Floats, copies: Counts) -> Numbers:
    """Return Somers' D of a value given copies, over pairs of members that differ in these."""

    def sample(inside: Counts, _: Counts, within_cells: Mask, n_groups: int) -> _Sampled:
        side = Side(values[inside], rows.group[inside])
        trend, pairs = trend_sample(side, copies[inside], n_groups, rows.strata(inside))
        return (trend, np.array([pairs])) if pairs else None

    return _numbers(rows, values, None, IntervalMethod.TREND, sample)


def number_groups(dataset: Iterable[str], group: Iterable[str]) -> Counts:
    """Return the number of each row's group within its dataset, in order of first appearance."""
    numbers: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(count().__next__))
    pairs = zip(dataset, group, strict=True)
    return np.array([numbers[name][own] for name, own in pairs], dtype=np.int64)


EQUAL = "all scores are equal"


def unsupported(rows: Rows, scores: Floats, at: Counts) -> str | None:
    """Return why the scores of some rows support no AUC with an interval; None if they do."""
    sides = {"members": at[rows.member[at]], "non-members": at[rows.nonmember[at]]}
    for name, side in sides.items():
        if len(side) < 2:
            return f"one row only among the {name}" if len(side) else f"no {name}"
    compared = scores[np.concatenate([*sides.values()])]
    if (compared == compared[0]).all():
        return EQUAL
    for name, side in sides.items():
        if len(np.unique(rows.group[side])) < 2:
            return f"one group only among the {name}"
    return None


def _numbers(
    rows: Rows,
    values: Floats,
    within: Mask | None,
    scale: IntervalMethod,
    sample: Callable[[Counts, Counts, Mask, int], _Sampled],
) -> Numbers:
    """Return numbers of all seeds.

    Args:
        rows: of all seeds, [n].
        values: of each, [n].
        within: as for `auc_numbers`.
        scale: of the numbers.
        sample: returns the estimate of a dataset of a seed, given indices of members and
            non-members, the members of each number, and groups; with weights if these are not the
            members.
    """
    measured = np.isfinite(values)
    member, nonmember = rows.member & measured, rows.nonmember & measured
    lacking = (rows.member | rows.nonmember) & ~measured
    cells = np.ones((1, len(values)), dtype=bool) if within is None else within
    seeds: list[dict[str, Part]] = []
    for seed in rows.places:
        seeds.append({})
        for dataset, at in seed.items():
            inside, outside = at[member[at]], at[nonmember[at]]
            if not len(inside):
                continue
            within_cells = cells[:, inside]
            sample_of = sample(inside, outside, within_cells, rows.n_groups[dataset])
            if sample_of is None:
                continue
            count = within_cells.sum(axis=1)
            estimates, weight = (
                sample_of if not isinstance(sample_of, Sample) else (sample_of, count.astype(float))
            )
            present = np.zeros((len(within_cells), rows.n_groups[dataset]), dtype=bool)
            for k, cell in enumerate(within_cells):
                present[k, rows.group[inside[cell]]] = True
            seeds[-1][dataset] = Part(
                estimates, weight, count, len(outside), int(lacking[at].sum()), present
            )
    return Numbers(seeds, scale)
