"""From influence values to variances: over datasets, and over seeds as over readers.

    V = max(MS / s + C, V_items)

*V_items* is the variance from which rows there are: influence values averaged over the seeds and
summed by group *across* seeds, since rows are assigned to the sides again for each seed. *MS* is
the mean square of the s seeds' values, *C* the covariance of two seeds, which the rows they share
make: Obuchowski and Rockette 1995, whose readers are our seeds, with the degrees of freedom of
Hillis 2007 (Satterthwaite 1946 for one seed). Seeds that agree by chance make no number
surer than its rows are.

With one seed or two V is V_items: the statement is about these models. Two values do not predict a
third, and with one degree of freedom an interval would be equally uninformative.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.intervals.influence import Counts, Floats, Mask, Sample

FROM_SEEDS = 3
"""From this many seeds on, an interval applies to any seed; with fewer, to these models."""


class Part(NamedTuple):
    """The estimates of K numbers from one dataset of one seed, with their sample sizes."""

    sample: Sample
    weight: Floats
    """[K]: its share of the number; shares of one seed need not sum to one."""
    members: Counts | None = None
    """Number of rows of each number, [K]; None if not counted."""
    nonmembers: int = 0
    """Rows that they are compared with; 0 for a mean."""
    left_out: int = 0
    """Rows without a value."""
    present: Mask | None = None
    """Mask of the groups with a row in each number, [K, groups]."""

    def at(self, places: Counts) -> "Part":
        """Return the numbers of some places."""
        members = None if self.members is None else self.members[places]
        return Part(self.sample.part(places), self.weight[places], members, self.nonmembers)


Seeds = Sequence[Mapping[str, Part]]
"""For each seed its datasets."""


class Clustered(NamedTuple):
    """K numbers with their variances."""

    value: Floats
    """Mean over the seeds that have one, [K]."""
    variance: Floats
    freedom: Floats
    """Satterthwaite's degrees of freedom, [K]."""
    seeds: Counts
    """Seeds that have a value, [K]."""
    lowest: Floats
    """The lowest of the seeds' values, [K]; with two seeds this and the next are both."""
    highest: Floats
    member_groups: Counts
    """Groups of members in the seed that has fewest, [K]."""
    smaller_groups: Counts
    """The same of the side that has fewer."""
    influence: Floats
    """Mean over the seeds, by group, [K, groups of all datasets]: what numbers share."""
    shortfall: Floats | None = None
    """Ratio of the variance expected of an AUC's independent rows to the variance that they show: 1
    or more, [K]. Rows that are ordered nearly perfectly show too little of their spread."""


def cluster(seeds: Seeds) -> Clustered:
    """Combine the datasets of each seed, and the seeds.

    Args:
        seeds: for each its datasets; at least one seed has one.
    """
    numbers = len(next(part.weight for parts in seeds for part in parts.values()))
    values = np.full((len(seeds), numbers), np.nan)
    members = np.zeros((len(seeds), numbers), dtype=np.int64)
    smaller = np.zeros_like(members)
    by_group: dict[str, Floats] = {}
    parts_of: dict[str, Floats] = {}
    freedom_of: dict[str, Floats] = {}
    within = np.zeros((len(seeds), numbers))
    of_rows = np.zeros((2, numbers))
    for s, parts in enumerate(seeds):
        if not parts:
            continue
        values[s], shares = pool_datasets([*parts.values()])
        counted = np.zeros((2, numbers), dtype=np.int64)
        for (dataset, part), share in zip(parts.items(), shares, strict=True):
            sample = part.sample
            sums = share[:, None] * sample.influence.sum(axis=0)
            by_group[dataset] = by_group.get(dataset, 0.0) + sums
            counted += np.where(share > 0, sample.groups, 0)
            variances = share**2 * np.square(sample.influence).sum(axis=2)
            # A single group has no spread: its distance from the others' value serves as one.
            alone = (sample.groups[0] == 1) & (share > 0) & (share < 1)
            off = np.where(alone, (share * np.nan_to_num(sample.value - values[s])) ** 2, 0.0)
            variances[0] += off
            within[s] += np.square(sums).sum(axis=1) + off
            if sample.of_rows is not None:
                observed, expected = np.nan_to_num(sample.of_rows)
                of_rows += share**2 * np.stack([observed, np.maximum(observed, expected)])
            by_group[f"{dataset}\0alone {s}"] = np.sqrt(off)[:, None]
            parts_of[dataset] = parts_of.get(dataset, 0.0) + variances
            freedom_of[dataset] = np.fmax(freedom_of.get(dataset, 1.0), sample.freedom)
        members[s], smaller[s] = counted[0], counted.min(axis=0)
    measured = np.isfinite(values)
    count = measured.sum(axis=0)
    least = np.iinfo(np.int64).max
    items = (
        sum(np.square(sums).sum(axis=1) for sums in by_group.values()) / np.maximum(count, 1) ** 2
    )
    freedom = _satterthwaite(parts_of, freedom_of)
    variance, freedom = _add_seed_variance(values, within, items, freedom, count)
    shared = [by_group[name] for name in sorted({name for parts in seeds for name in parts})]
    return Clustered(
        value=mean_of_seeds(values),
        variance=variance,
        freedom=freedom,
        seeds=count,
        lowest=np.where(measured, values, np.inf).min(axis=0),
        highest=np.where(measured, values, -np.inf).max(axis=0),
        member_groups=np.where(measured, members, least).min(axis=0),
        smaller_groups=np.where(measured, smaller, least).min(axis=0),
        influence=np.concatenate(shared, axis=1) / np.maximum(count, 1)[:, None],
        shortfall=np.maximum(of_rows[1] / np.where(of_rows[0] > 0, of_rows[0], np.inf), 1.0),
    )


def _add_seed_variance(
    values: Floats, within: Floats, items: Floats, freedom: Floats, count: Counts
) -> tuple[Floats, Floats]:
    """Add the variance between seeds beyond that of their rows, if there are enough seeds."""
    n = np.maximum(count, 2)
    deviation = np.where(np.isfinite(values), values - mean_of_seeds(values), 0.0)
    between = np.square(deviation).sum(axis=0) / (n - 1) / n
    inner = np.where(np.isfinite(values), within, 0.0).sum(axis=0) / n
    # Below zero if rows are assigned to the sides again: luck in one seed is not luck in another.
    shared = (n * items - inner) / (n - 1)
    variance = between + shared
    with np.errstate(invalid="ignore", divide="ignore"):
        hillis = variance**2 / (between**2 / (n - 1) + shared**2 / freedom)
    differ = (count >= FROM_SEEDS) & (variance > items)
    return np.where(differ, variance, items), np.where(differ, hillis, freedom)


def _satterthwaite(parts: Mapping[str, Floats], freedom: Mapping[str, Floats]) -> Floats:
    variances = np.concatenate([*parts.values()])
    total, squares = sum(variances), sum(variances**2 / np.concatenate([*freedom.values()]))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(squares > 0, total**2 / squares, 1.0)


def pool_datasets(parts: Sequence[Part]) -> tuple[Floats, list[Floats]]:
    """Return K numbers of one seed, and each dataset's share of them; zero if it has no value."""
    weights = [np.where(np.isfinite(part.sample.value), part.weight, 0.0) for part in parts]
    total = np.sum(weights, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = [np.where(total > 0, weight / total, 0.0) for weight in weights]
    clustered = [
        share * np.nan_to_num(part.sample.value) for part, share in zip(parts, shares, strict=True)
    ]
    return np.where(total > 0, np.sum(clustered, axis=0), np.nan), shares


def mean_of_seeds(values: Floats) -> Floats:
    """Return the mean over the seeds that have a value; NaN if none has."""
    measured = np.isfinite(values)
    count = measured.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(measured, values, 0.0).sum(axis=0) / np.where(count > 0, count, np.nan)
