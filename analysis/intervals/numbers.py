"""One path from scores to an interval: numbers of rows by seed and dataset, and what they say.

    (auc_numbers(rows, scores) - auc_numbers(rows, others)).estimates(confidence=0.95)

A builder gives what each dataset of each seed says of K numbers (`Part`); a difference of two on
the same rows subtracts influence values, so that what both share cancels. Values that are not
finite are left out, and so is a dataset without a member. Cost: 1 ms for 200 rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.intervals.clustered import Clustered, Part, cluster
from analysis.intervals.control_variate import adjust, control_weights
from analysis.intervals.ends import Interval, Scale, find_difference, find_interval
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import (
    Counts,
    Mask,
    Sample,
    Side,
    auc_sample,
    difference,
    mean_sample,
    tpr_sample,
    trend_sample,
)
from analysis.metrics import Floats

_APART = "none: not every seed has members of both"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows of all seeds, one after the other, [n] each."""

    seed: npt.NDArray[Any]
    dataset: npt.NDArray[np.object_]
    group: Counts
    """Number within its dataset, from 0; one group has one number in every seed."""
    member: Mask
    nonmember: Mask
    """Rows that members are held against; a row may be neither."""
    levels: Counts | None = None
    """Strata of members, where the design says how many groups each has."""

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
        seeds: dict[Any, dict[str, list[int]]] = {}
        pairs = zip(self.seed.tolist(), self.dataset.tolist(), strict=True)
        for place, (seed, dataset) in enumerate(pairs):
            seeds.setdefault(seed, {}).setdefault(dataset, []).append(place)
        return [{name: np.array(at) for name, at in seed.items()} for seed in seeds.values()]

    @cached_property
    def n_groups(self) -> dict[str, int]:
        """Groups of each dataset over all seeds."""
        found: dict[str, int] = {}
        for seed in self.places:
            for name, at in seed.items():
                found[name] = max(found.get(name, 0), int(self.group[at].max()) + 1)
        return found

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


@dataclass(frozen=True)
class Numbers:
    """K numbers (of copies) of one column under one model."""

    seeds: Sequence[Mapping[str, Part]]
    """For each seed, by dataset; empty for a seed that has no number."""
    scale: Scale
    parents: "tuple[Numbers, Numbers] | None" = None
    """Of a difference: both."""
    _known: dict[str | None, Clustered | None] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What was clustered before: differences to many columns ask again and again."""

    def of(self, dataset: str | None) -> "Numbers":
        """Return the numbers of one dataset; None stands for all of them together."""
        if dataset is None:
            return self
        seeds = [{name: seed[name] for name in seed if name == dataset} for seed in self.seeds]
        return Numbers(seeds, self.scale)

    def __sub__(self, other: "Numbers") -> "Numbers":
        """Return the differences on the same rows, where both have numbers."""
        seeds = [
            {
                name: mine[name]._replace(sample=difference(mine[name].sample, theirs[name].sample))
                for name in mine
                if name in theirs
            }
            for mine, theirs in zip(self.seeds, other.seeds, strict=True)
        ]
        scale = self.scale if self.scale is Scale.AUC else Scale.SLOPE
        return Numbers(seeds, scale, (self, other))

    def between(self, pairs: Sequence[tuple[int, int]]) -> "Numbers":
        """Return what numbers of one cell of members differ by from those of another cell.

        Members differ, non-members are the same: what the latter do to both cancels.

        Args:
            pairs: the cell and the one that is taken off.
        """
        ones, others = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
        gaps = [_cell_gaps(seed, ones, others) for seed in self.seeds]
        return Numbers(gaps, self.scale, (self.at(ones), self.at(others)))

    def at(self, places: Counts) -> "Numbers":
        """Return the numbers of some places."""
        seeds = [
            {name: Part(p.sample.part(places), p.weight[places]) for name, p in seed.items()}
            for seed in self.seeds
        ]
        return Numbers(seeds, self.scale)

    def adjusted(self, base: "Numbers", *, centre: float) -> "tuple[Numbers, Floats]":
        """Return the numbers less their share of what a base model's differ from a centre by.

        The shares are the weights of `control_variate`, [K].
        """
        weights = control_weights(self.seeds, base.seeds)
        seeds = adjust(self.seeds, base.seeds, weights, centre=centre)
        return Numbers(seeds, self.scale), weights

    def clustered(self, dataset: str | None = None) -> Clustered | None:
        """Return K numbers over all seeds, datasets weighted; None if no dataset has any."""
        if dataset not in self._known:
            parts = self.of(dataset).seeds
            self._known[dataset] = cluster(parts) if any(parts) else None
        return self._known[dataset]

    def estimates(self, dataset: str | None = None, *, confidence: float) -> list[Estimate]:
        """Return K numbers with their intervals; none if no dataset has any.

        Args:
            dataset: which; None for all of them together.
            confidence: coverage asked for.
        """
        found = self.clustered(dataset)
        if found is None:
            return []
        if self.parents is not None and self.scale is Scale.AUC:
            one, other = (parent.clustered(dataset) for parent in self.parents)
            if one is None or other is None:
                return []
            low, high, about = find_difference(found, one, other, confidence=confidence)
            apart = (one.seeds != found.seeds) | (other.seeds != found.seeds)
            said = [_APART if unlike else each for unlike, each in zip(apart, about, strict=True)]
            interval = Interval(np.where(apart, nan, low), np.where(apart, nan, high), said)
        else:
            interval = find_interval(found, self.scale, confidence=confidence)
        return self.described(found, interval, dataset)

    def described(
        self, found: Clustered, interval: Interval, dataset: str | None = None
    ) -> list[Estimate]:
        """Return numbers that were made of these, with intervals and what is behind them."""
        nothing = np.zeros(len(found.value), dtype=np.int64)
        members, nonmembers, groups = nothing.copy(), nothing.copy(), nothing.copy()
        present: dict[str, Mask] = {}
        for seed in self.of(dataset).seeds:
            for name, part in seed.items():
                own = nothing if part.members is None else part.members
                members += own
                nonmembers += np.where(own > 0, part.nonmembers, 0)
                if part.present is not None:
                    present[name] = part.present | present.get(name, np.zeros(1, dtype=bool))
        for mask in present.values():
            groups += mask.sum(axis=1)
        lowest, highest = (
            np.where(found.seeds > 0, ends, nan) for ends in (found.lowest, found.highest)
        )
        columns = (members, nonmembers, groups, found.seeds, lowest, highest)
        return [
            Estimate(value, low, high, about, *rest)
            for value, low, high, about, *rest in zip(
                found.value.tolist(),
                interval.low.tolist(),
                interval.high.tolist(),
                interval.about,
                *(column.tolist() for column in columns),
                strict=True,
            )
        ]

    def left_out(self, dataset: str | None = None) -> int:
        """Return how many rows have no value."""
        return sum(part.left_out for seed in self.of(dataset).seeds for part in seed.values())


def auc_numbers(
    rows: Rows, scores: Floats, within: Mask | None = None, *, least: int = 2
) -> Numbers:
    """Return the AUCs of members against the non-members of their own dataset.

    Args:
        rows: of all seeds, [n].
        scores: of each, [n].
        within: which rows each of K numbers is of, [K, n]; None for one number of all members.
        least: groups of non-members below which a dataset has none.
    """

    def sample(inside: Counts, outside: Counts, held: Mask, n_groups: int) -> Sample | None:
        if len(np.unique(rows.group[outside])) < least:
            return None
        return auc_sample(*rows.sides(scores, inside, outside), held, n_groups, rows.strata(inside))

    return _numbers(rows, scores, within, Scale.AUC, sample)


def tpr_numbers(rows: Rows, scores: Floats, rate: float, within: Mask | None = None) -> Numbers:
    """Return TPRs at an FPR of at most `rate` to expect; arguments as for `auc_numbers`."""

    def sample(inside: Counts, outside: Counts, held: Mask, n_groups: int) -> Sample | None:
        sides = rows.sides(scores, inside, outside)
        return tpr_sample(*sides, held, n_groups, rate, rows.strata(inside))

    return _numbers(rows, scores, within, Scale.TPR, sample)


def mean_numbers(
    rows: Rows,
    values: Floats,
    within: Mask | None = None,
    *,
    weights: Floats | None = None,
    scale: Scale = Scale.SLOPE,
) -> Numbers:
    """Return means over members; `weights` of the rows, other arguments as for `auc_numbers`."""

    def sample(inside: Counts, _: Counts, held: Mask, n_groups: int) -> Sample:
        own = None if weights is None else weights[inside]
        return mean_sample(values[inside], rows.group[inside], held, n_groups, own)

    return _numbers(rows, values, within, scale, sample)


def share_numbers(
    rows: Rows, values: Floats, within: Mask | None = None, *, weights: Floats | None = None
) -> Numbers:
    """Return means of what is between 0 and 1, and so are their ends; see `mean_numbers`."""
    return mean_numbers(rows, values, within, weights=weights, scale=Scale.TPR)


def trend_numbers(rows: Rows, values: Floats, copies: Counts) -> Numbers:
    """Return Somers' D of a value given copies, over pairs of members that differ in these."""

    def sample(
        inside: Counts, _: Counts, held: Mask, n_groups: int
    ) -> tuple[Sample, Floats] | None:
        side = Side(values[inside], rows.group[inside])
        found, pairs = trend_sample(side, copies[inside], n_groups, rows.strata(inside))
        return (found, np.array([pairs])) if pairs else None

    return _numbers(rows, values, None, Scale.TREND, sample)


def _cell_gaps(seed: Mapping[str, Part], ones: Counts, others: Counts) -> dict[str, Part]:
    """Return the parts of one seed's datasets in gaps, which are their mean.

    A dataset's share differs between two cells, so it is in the parts and not in their weights.
    """
    parts = [*seed.values()]
    if not parts:
        return {}
    there = [np.where(np.isfinite(part.sample.value), part.weight, 0.0) for part in parts]
    total = np.sum(there, axis=0)
    shares = [one / np.where(total > 0, total, np.nan) for one in there]
    values = [np.nan_to_num(part.sample.value) for part in parts]
    pooled = np.sum([s * v for s, v in zip(shares, values, strict=True)], axis=0)
    groups = np.sum([part.sample.groups for part in parts], axis=0)
    fewest = np.minimum(groups[:, ones], groups[:, others])
    found: dict[str, Part] = {}
    for (name, part), share, own in zip(seed.items(), shares, values, strict=True):
        sample, factor = part.sample, np.nan_to_num(share) * len(parts)
        # As in `cluster`: how far a group that is alone lies off stands for its spread.
        alone = (sample.groups[0] == 1) & (share > 0) & (share < 1)
        off = np.where(alone, own - pooled, 0.0)
        influence = np.concatenate(
            [sample.influence, np.stack([off, np.zeros_like(off)])[:, :, None]], axis=2
        )
        influence = influence * factor[:, None]
        value = np.where(total > 0, factor * own, np.nan)
        freedom = np.where(factor > 0, sample.freedom, np.inf)
        least = np.minimum(freedom[:, ones], freedom[:, others])
        gap = Sample(
            value[ones] - value[others],
            influence[:, ones] - influence[:, others],
            np.where(np.isfinite(least), least, 1.0),
            # All counted with the first dataset: the smaller of two sums is no sum.
            np.zeros_like(fewest) if found else fewest,
        )
        found[name] = Part(gap, np.ones(len(ones)))
    return found


EQUAL = "all scores are equal"


def degenerate_reason(members: Floats, nonmembers: Floats) -> str | None:
    """Return why scores support no AUC; None if they support one."""
    for side, scores in (("members", members), ("non-members", nonmembers)):
        if len(scores) == 0:
            return f"no {side}"
        if len(scores) == 1:
            return f"one row only among the {side}"
    first = members[0]
    if (members == first).all() and (nonmembers == first).all():
        return EQUAL
    return None


_Sampled = Sample | tuple[Sample, Floats] | None


def _numbers(
    rows: Rows,
    values: Floats,
    within: Mask | None,
    scale: Scale,
    sample: Callable[[Counts, Counts, Mask, int], _Sampled],
) -> Numbers:
    """Return numbers of all seeds.

    Args:
        rows: of all seeds, [n].
        values: of each, [n].
        within: as for `auc_numbers`.
        scale: of the numbers.
        sample: says what a dataset of a seed does, by the places of members and non-members, of
            which members each number is, and groups; with weights if these are not the members.
    """
    there = np.isfinite(values)
    member, nonmember = rows.member & there, rows.nonmember & there
    lacking = (rows.member | rows.nonmember) & ~there
    seeds: list[dict[str, Part]] = []
    for seed in rows.places:
        seeds.append({})
        for dataset, at in seed.items():
            inside, outside = at[member[at]], at[nonmember[at]]
            if not len(inside):
                continue
            held = np.ones((1, len(inside)), dtype=bool) if within is None else within[:, inside]
            found = sample(inside, outside, held, rows.n_groups[dataset])
            if found is None:
                continue
            count = held.sum(axis=1)
            made, weight = found if not isinstance(found, Sample) else (found, count.astype(float))
            present = np.zeros((len(held), rows.n_groups[dataset]), dtype=bool)
            for k, cell in enumerate(held):
                present[k, rows.group[inside[cell]]] = True
            seeds[-1][dataset] = Part(
                made, weight, count, len(outside), int(lacking[at].sum()), present
            )
    return Numbers(seeds, scale)
