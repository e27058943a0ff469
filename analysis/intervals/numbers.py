"""One path from scores to an interval: numbers by seed and dataset, and their differences.

    (auc_numbers(rows, scores) - auc_numbers(rows, others)).estimates(confidence=0.95)

`rows` makes them: what each dataset of each seed contributes to K numbers (`Part`). A difference of
two on the same rows subtracts influence values, so that what both share cancels.

The base model is a control variate: what the luck of the pool adds to a number is taken out.

    adjusted = number - weight * (base - centre),    weight = covariance / variance

The base model saw no member, so its number (an AUC whose expectation is 0.5, a Somers' D whose
expectation is 0) differs from the centre by nothing but which rows became members. The same rows
are in the trained model's number. Covariance and variance come from the influence values that the
two share, group by group. The plain difference (a weight of 1) has often the larger variance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan

import numpy as np

from analysis.intervals.clustered import Clustered, Part, Seeds, cluster, pool_datasets
from analysis.intervals.ends import Interval, IntervalMethod, find_difference, find_interval
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Counts, Floats, Mask, Sample, difference
from analysis.intervals.joint import BySeed, seed_numbers

_APART = "none: not every seed has members of both"


@dataclass(frozen=True)
class Numbers:
    """K numbers (of copies) of one column under one model."""

    seeds: Sequence[Mapping[str, Part]]
    """For each seed, by dataset; empty for a seed that has no number."""
    scale: IntervalMethod
    parents: "tuple[Numbers, Numbers] | None" = None
    """Of a difference: both."""
    _known: dict[str | None, Clustered | None] = field(
        default_factory=dict, compare=False, repr=False
    )
    """A cache of clustered numbers, which differences to many columns reuse."""

    def of(self, dataset: str | None) -> "Numbers":
        """Return the numbers of one dataset; for None, those of all datasets pooled."""
        if dataset is None:
            return self
        seeds = [{name: seed[name] for name in seed if name == dataset} for seed in self.seeds]
        return Numbers(seeds, self.scale)

    def __sub__(self, other: "Numbers") -> "Numbers":
        """Return the differences on the same rows, for datasets with numbers on both sides."""
        seeds = [
            {
                name: own[name]._replace(sample=difference(own[name].sample, others[name].sample))
                for name in own
                if name in others
            }
            for own, others in zip(self.seeds, other.seeds, strict=True)
        ]
        scale = self.scale if self.scale is IntervalMethod.AUC else IntervalMethod.SLOPE
        return Numbers(seeds, scale, (self, other))

    def between(self, pairs: Sequence[tuple[int, int]]) -> "Numbers":
        """Return the differences between the numbers of two cells of members.

        Members differ, non-members are the same: what the latter do to both cancels.

        Args:
            pairs: the cell and the one that is taken off.
        """
        ones, others = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
        gaps = [_cell_gaps(seed, ones, others) for seed in self.seeds]
        return Numbers(gaps, self.scale, (self.at(ones), self.at(others)))

    def at(self, places: Counts) -> "Numbers":
        """Return the numbers of some places."""
        seeds = [{name: part.at(places) for name, part in seed.items()} for seed in self.seeds]
        return Numbers(seeds, self.scale)

    def by_seed(self, dataset: str | None = None) -> BySeed:
        """Return the numbers of each seed, datasets together, for covariances of several.

        These are the jackknife's if the numbers were built so: intervals of their own need not be.
        """
        return seed_numbers(self.of(dataset).seeds)

    def adjusted(self, base: "Numbers", *, centre: float) -> "tuple[Numbers, Floats]":
        """Return the numbers less their share of what a base model's differ from a centre by.

        The shares are those of `control_weights`, [K].
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
            confidence: requested coverage.
        """
        clustered = self.clustered(dataset)
        if clustered is None:
            return []
        if self.parents is not None and self.scale is IntervalMethod.AUC:
            first, second = (parent.clustered(dataset) for parent in self.parents)
            if first is None or second is None:
                return []
            low, high, about = find_difference(clustered, first, second, confidence=confidence)
            apart = (first.seeds != clustered.seeds) | (second.seeds != clustered.seeds)
            scopes = [_APART if unlike else each for unlike, each in zip(apart, about, strict=True)]
            interval = Interval(np.where(apart, nan, low), np.where(apart, nan, high), scopes)
        else:
            interval = find_interval(clustered, self.scale, confidence=confidence)
        return self.described(clustered, interval, dataset)

    def described(
        self, clustered: Clustered, interval: Interval, dataset: str | None = None
    ) -> list[Estimate]:
        """Return numbers derived from these, with their intervals and sample sizes."""
        members, nonmembers, groups = np.zeros((3, len(clustered.value)), dtype=np.int64)
        present: dict[str, Mask] = {}
        for seed in self.of(dataset).seeds:
            for name, part in seed.items():
                if part.members is not None:
                    members += part.members
                    nonmembers += np.where(part.members > 0, part.nonmembers, 0)
                if part.present is not None:
                    present[name] = part.present | present.get(name, np.zeros(1, dtype=bool))
        for mask in present.values():
            groups += mask.sum(axis=1)
        lowest, highest = (
            np.where(clustered.seeds > 0, end, nan) for end in (clustered.lowest, clustered.highest)
        )
        counts = (members, nonmembers, groups, clustered.seeds, lowest, highest)
        first = [column.tolist() for column in (clustered.value, *interval[:2])]
        last = [column.tolist() for column in counts]
        return [*map(Estimate, *first, interval.about, *last)]

    def left_out(self, dataset: str | None = None) -> int:
        """Return the number of rows without a value."""
        return sum(part.left_out for seed in self.of(dataset).seeds for part in seed.values())


def join_numbers(several: Sequence[Numbers]) -> Numbers:
    """Return the numbers of several, one after the other.

    Seeds are the same, and groups have the same numbers. One without datasets counts as one number.
    Non-members, which may differ, are not counted.
    """
    counts = [
        next((len(part.weight) for seed in numbers.seeds for part in seed.values()), 1)
        for numbers in several
    ]
    widths: dict[str, int] = {}
    pairs = (pair for numbers in several for seed in numbers.seeds for pair in seed.items())
    for name, part in pairs:
        widths[name] = max(widths.get(name, 0), part.sample.influence.shape[2])
    seeds = [
        {
            name: _join_parts([seed.get(name) for seed in together], counts, width)
            for name, width in widths.items()
            if any(name in seed for seed in together)
        }
        for together in zip(*(numbers.seeds for numbers in several), strict=True)
    ]
    return Numbers(seeds, several[0].scale)


def _join_parts(parts: Sequence[Part | None], counts: Sequence[int], width: int) -> Part:
    """Join numbers of one dataset: `counts` of each part, with influence padded to `width`."""
    like = next(part for part in parts if part is not None)
    joined = [
        _empty_part(like, count) if part is None else part
        for part, count in zip(parts, counts, strict=True)
    ]
    lacking = [(part.sample, width - part.sample.influence.shape[2]) for part in joined]
    samples = [
        sample._replace(influence=np.pad(sample.influence, ((0, 0), (0, 0), (0, groups))))
        for sample, groups in lacking
    ]
    members = [part.weight * 0 if part.members is None else part.members for part in joined]
    return Part(
        Sample.join(samples),
        np.concatenate([part.weight for part in joined]),
        np.concatenate(members).astype(np.int64),
    )


def _empty_part(like: Part, count: int) -> Part:
    """Return the numbers of a dataset without rows, all absent."""
    sample = like.sample.part(np.zeros(count, dtype=np.int64))
    nothing = np.zeros(count, dtype=np.int64)
    value, freedom = np.full(count, nan), np.ones((2, count))
    return Part(sample._replace(value=value, freedom=freedom), nothing.astype(float), nothing)


def _cell_gaps(seed: Mapping[str, Part], ones: Counts, others: Counts) -> dict[str, Part]:
    """Return the parts of one seed's datasets in gaps, which are their mean.

    A dataset's share differs between two cells, so it is in the parts and not in their weights.
    """
    parts = [*seed.values()]
    if not parts:
        return {}
    pooled, shares = pool_datasets(parts)
    groups = np.sum([part.sample.groups for part in parts], axis=0)
    fewest = np.minimum(groups[:, ones], groups[:, others])
    gaps: dict[str, Part] = {}
    for (name, part), share in zip(seed.items(), shares, strict=True):
        sample, factor = part.sample, share * len(parts)
        own = np.nan_to_num(sample.value)
        # As in `cluster`: the deviation of a single group serves as its spread.
        is_single_group = (sample.groups[0] == 1) & (share > 0) & (share < 1)
        deviation = np.where(is_single_group, own - pooled, 0.0)
        influence = np.concatenate(
            [sample.influence, np.stack([deviation, np.zeros_like(deviation)])[:, :, None]], axis=2
        )
        influence = influence * factor[:, None]
        value = np.where(np.isfinite(pooled), factor * own, np.nan)
        freedom = np.where(factor > 0, sample.freedom, np.inf)
        least = np.minimum(freedom[:, ones], freedom[:, others])
        gap = Sample(
            value[ones] - value[others],
            influence[:, ones] - influence[:, others],
            np.where(np.isfinite(least), least, 1.0),
            # All counted with the first dataset: the smaller of two sums is not a sum.
            np.zeros_like(fewest) if gaps else fewest,
        )
        gaps[name] = Part(gap, np.ones(len(ones)))
    return gaps


def control_weights(seeds: Seeds, base: Seeds) -> Floats:
    """Return the weight of the base model's deviation in each of K numbers.

    Args:
        seeds: of the trained models.
        base: of the base model on the same rows, seed by seed and dataset by dataset.

    Returns:
        [K]; NaN if the base model's number does not vary.
    """
    first, second = cluster(seeds).influence, cluster(base).influence
    with np.errstate(invalid="ignore", divide="ignore"):
        return (first * second).sum(axis=1) / np.square(second).sum(axis=1)


def adjust(seeds: Seeds, base: Seeds, weights: Floats, *, centre: float) -> list[dict[str, Part]]:
    """Return the adjusted numbers with their influence values.

    Args:
        seeds, base: as for `control_weights`.
        weights: what it returned.
        centre: what the base model's number is expected to be.
    """
    return [
        {name: _adjust_part(part, others[name], weights, centre) for name, part in parts.items()}
        for parts, others in zip(seeds, base, strict=True)
    ]


def _adjust_part(part: Part, base: Part, weights: Floats, centre: float) -> Part:
    own, control = part.sample, base.sample
    # The weight was found in the same rows, which costs one degree of freedom on either side.
    cost = np.sqrt(own.groups / np.maximum(own.groups - 1, 1))
    sample = own._replace(
        value=own.value - weights * (control.value - centre),
        influence=(own.influence - weights[:, None] * control.influence) * cost[:, :, None],
        freedom=np.maximum(own.freedom - 1, 1.0),
    )
    return part._replace(sample=sample)
