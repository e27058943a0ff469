"""Several numbers of the same rows together, and the covariance of what is made of them.

AUCs of one arm share non-members; arms of one seed share rows and random numbers. All of it is in
the influence values, summed by group: the covariance of two numbers is the sum over groups of the
product of what each group moves them by. With one seed or two that is their covariance, and applies
to these models; degrees of freedom come from the spread of the groups' squares: 3 (Σc²)² / Σc⁴ is
the number of groups if all weigh alike, and fewer if a few carry the variance.

From three seeds on each number is made within each seed, so everything shared by a seed's numbers
has cancelled, and the seeds are the readers of Obuchowski and Rockette (1995):

    V = V_seeds / S + max(V_shared, 0)

V_seeds is the variance of the seeds' numbers, V_shared what the same rows do in two seeds (the
covariance of their influence values); a matrix leaves out directions of negative variance. The
degrees of freedom of Student's t are Satterthwaite's (1946), as Hillis (2007) has them for readers,
V² / ((V_seeds / S)² / (S - 1) + Var(V_shared) / 2), S - 1 at least: the last, which he leaves out,
matters if the seeds are close together by chance.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.intervals.clustered import FROM_SEEDS, Seeds, pool_datasets
from analysis.intervals.influence import Counts, Floats, Mask, Sample


class Joint(NamedTuple):
    """J numbers, each linear in some others."""

    value: Floats
    covariance: Floats
    """[J, J]."""
    freedom: Floats
    """[J]."""
    seeds: int
    """The seeds used: those in which every number has a value."""

    @property
    def error(self) -> Floats:
        """Standard errors, [J]."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


class BySeed(NamedTuple):
    """K numbers under each of S seeds, datasets together."""

    value: Floats
    """[S, K]; NaN if there is none."""
    influence: Floats
    """[S, K, groups of all datasets]."""
    groups: Counts
    """Groups of the smaller side, summed over datasets, [S, K]."""
    members: Counts
    """[S, K]."""
    nonmembers: Counts
    """[S, K]."""

    def part(self, seeds: Mask | slice, numbers: Mask | slice) -> "BySeed":
        """Return some of the numbers under some of the seeds."""
        parts: list[Any] = [column[seeds][:, numbers] for column in self]
        return BySeed(*parts)

    def shared(self) -> "BySeed":
        """Return the numbers under the seeds that have them all, one or more."""
        measured = np.isfinite(self.value).all(axis=1) & (self.value.shape[1] > 0)
        return self.part(np.asarray(measured, dtype=bool), slice(None))

    def covariance(self, weights: Floats) -> Joint:
        """Return linear combinations of the numbers, [J, K], over the seeds that have them all."""
        shared_rows = self.shared()
        influence = np.einsum("jk,skg->sjg", weights, shared_rows.influence)
        return join_seeds(shared_rows.value @ weights.T, influence)


def seed_numbers(seeds: Seeds) -> BySeed:
    """Return the numbers of each seed, its datasets pooled; K is 0 if there is no dataset."""
    parts = [part for seed in seeds for part in seed.values()]
    shape = len(seeds), len(parts[0].weight) if parts else 0
    widths = {name: part.sample.influence.shape[2] for seed in seeds for name, part in seed.items()}
    value = np.full(shape, np.nan)
    influence = {name: np.zeros((*shape, width)) for name, width in widths.items()}
    groups, members, nonmembers = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for s, seed in enumerate(seeds):
        if not seed:
            continue
        value[s], shares = pool_datasets([*seed.values()])
        for (name, part), share in zip(seed.items(), shares, strict=True):
            influence[name][s] = share[:, None] * part.sample.influence.sum(axis=0)
            groups[s] += np.where(share > 0, part.sample.groups.min(axis=0), 0)
            if part.members is not None:
                members[s] += part.members
                nonmembers[s] += np.where(part.members > 0, part.nonmembers, 0)
    moved = np.concatenate([*influence.values()] or [np.zeros((*shape, 0))], axis=2)
    return BySeed(value, moved, groups, members, nonmembers)


def leave_out(sample: Sample, sides: Sequence[tuple[Counts, Mask]]) -> Sample:
    """Return a sample with the influence of means as a jackknife over groups has it.

    Without a group of m among n rows a mean moves by n / (n - m) of its influence: as much as the
    sample's own correction, √(G / (G - 1)), if the groups are equal, and more for large ones.

    Args:
        sample: K means of two sides.
        sides: of each the group of every row, and which rows each number holds, [K or 1, rows].
    """
    moved = np.zeros_like(sample.influence)
    for side, (group, within) in enumerate(sides):
        size = np.stack([np.bincount(group[mask], minlength=moved.shape[2]) for mask in within])
        total, count = size.sum(axis=1, keepdims=True), np.maximum(sample.groups[side], 2)[:, None]
        left = total / np.maximum(total - size, 1)
        moved[side] = sample.influence[side] * (count - 1) / count * left
    return sample._replace(influence=moved)


def join_seeds(values: Floats, influence: Floats) -> Joint:
    """Return numbers that each seed has, [S, J], with influence values [S, J, groups]."""
    count = len(values)
    if not count:
        n_numbers = values.shape[1]
        nothing = np.full((n_numbers, n_numbers), np.nan)
        return Joint(np.full(n_numbers, np.nan), nothing, np.ones(n_numbers), 0)
    mean = influence.mean(axis=0)
    items = mean @ mean.T
    if count < FROM_SEEDS:
        return Joint(values.mean(axis=0), items, group_freedom(mean), count)
    off = values - values.mean(axis=0)
    between = off.T @ off / (count - 1) / count
    inner = np.einsum("sjg,skg->jk", influence, influence) / count
    shared = _without_negative((count * items - inner) / (count - 1), np.sqrt(np.diag(inner)))
    products = (count * mean**2 - np.square(influence).mean(axis=0)) / (count - 1)
    doubt = np.where(np.diag(shared) > 0, np.square(products).sum(axis=1) / 2, 0.0)
    total = between + shared
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.diag(total) ** 2 / (np.diag(between) ** 2 / (count - 1) + doubt)
    return Joint(values.mean(axis=0), total, np.fmax(freedom, count - 1.0), count)


def group_freedom(influence: Floats) -> Floats:
    """Return the degrees of freedom of variances that are sums of squares over groups, [J]."""
    squares = np.square(influence)
    fourth = np.square(squares).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = 3 * squares.sum(axis=1) ** 2 / fourth - 1
    most = np.maximum((squares > 0).sum(axis=1) - 2, 1)
    return np.where(fourth > 0, np.clip(freedom, 1.0, most), 1.0)


def _without_negative(matrix: Floats, scale: Floats) -> Floats:
    """Return the nearest matrix whose variances are not negative in any direction.

    Args:
        matrix: [J, J].
        scale: of each of the J numbers, [J].
    """
    unit = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2 / np.outer(unit, unit))
    # A number without a spread has none in any direction, despite rounding.
    return (vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(scale, scale)
