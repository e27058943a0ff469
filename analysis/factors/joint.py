"""Several AUCs of one study together: what they share, and the covariance of what is made of them.

AUCs of one arm share non-members; arms of one seed share rows and random numbers. All of it is in
the influence values, summed by group: the covariance of two numbers is the sum over groups of the
product of what each group moves them by. With one seed or two that is their covariance, and speaks
of these models; degrees of freedom come from the spread of the groups' squares: 3 (Σc²)² / Σc⁴ is
the number of groups where all weigh alike, and fewer where a few carry the variance.

From three seeds on each number is made within each seed, so whatever the numbers of a seed share
has cancelled, and the seeds are the readers of Obuchowski and Rockette (1995):

    V = V_seeds / S + max(V_shared, 0)

V_seeds is the variance of the seeds' numbers, V_shared what the same rows do in two seeds (the
covariance of their influence values); a matrix leaves out directions of negative variance. The
degrees of freedom of Student's t are Satterthwaite's (1946), as Hillis (2007) has them for readers,
V² / ((V_seeds / S)² / (S - 1) + Var(V_shared) / 2), S - 1 at least: the last, which he leaves out,
matters where the seeds lie close together by chance.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.intervals.clustered import FROM_SEEDS
from analysis.intervals.influence import Counts, Mask, Sample, Side, auc_sample
from analysis.metrics import Floats


class Rows(NamedTuple):
    """The rows of one model (one arm and seed) under one detector."""

    scores: Floats
    member: Mask
    dataset: Counts
    """Number of each row's dataset."""
    group: Counts
    """Number of each row's group; one group has one number in every arm and seed of a study."""


class Aucs(NamedTuple):
    """K AUCs under each of S seeds. The same rows have the same groups in all of them."""

    value: Floats
    """[S, K]; NaN where there is none."""
    influence: Floats
    """[S, K, groups]."""
    groups: Counts
    """Groups of the smaller side, [S, K]."""
    members: Counts
    """[S, K]."""
    nonmembers: Counts
    """[S, K]."""

    def pick(self, columns: Sequence[int] | Counts) -> "Aucs":
        """Return some of the AUCs."""
        at = np.asarray(columns, dtype=np.int64)
        parts: list[Any] = [part[:, at] for part in self]
        return Aucs(*parts)


class Joint(NamedTuple):
    """J numbers, each linear in some AUCs."""

    value: Floats
    covariance: Floats
    """[J, J]."""
    freedom: Floats
    """[J]."""
    seeds: int
    """Seeds behind them: those in which every AUC has a value."""

    @property
    def error(self) -> Floats:
        """Standard errors, [J]."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


def dataset_aucs(rows: Rows, cells: Sequence[Mask], n_groups: int) -> dict[int, Aucs]:
    """Return the AUC of each cell of members against all non-members of their dataset, one seed.

    Args:
        rows: of one model.
        cells: which rows each holds, [rows] each; of them the members count.
        n_groups: numbers of groups lie below.

    Returns:
        By the number of the dataset; datasets that lack a side are left out.
    """
    found = {}
    within = np.array(cells, dtype=bool).reshape(len(cells), len(rows.scores))
    for dataset in np.unique(rows.dataset).tolist():
        here = rows.dataset == dataset
        inside, outside = np.flatnonzero(here & rows.member), np.flatnonzero(here & ~rows.member)
        held = within[:, inside]
        if not len(outside) or not held.any():
            continue
        sample = auc_sample(
            Side(rows.scores[inside], rows.group[inside]),
            Side(rows.scores[outside], rows.group[outside]),
            held,
            n_groups,
        )
        count = held.sum(axis=1)
        found[dataset] = Aucs(
            sample.value[None],
            _left_out(
                sample, rows.group, [held, np.ones((1, len(outside)), bool)], (inside, outside)
            )[None],
            np.where(count > 0, sample.groups.min(axis=0), 0)[None],
            count[None],
            np.where(count > 0, len(outside), 0)[None],
        )
    return found


def _left_out(
    sample: Sample, group: Counts, held: Sequence[Mask], sides: Sequence[Counts]
) -> Floats:
    """Return the influence as a jackknife over groups has it, [K, groups].

    Without a group of m among n rows a mean moves by n / (n - m) of its influence: as much as the
    sample's own correction, √(G / (G - 1)), where the groups are equal, and more for large ones.
    """
    found = np.zeros_like(sample.influence[0])
    for influence, count, cells, rows in zip(
        sample.influence, sample.groups, held, sides, strict=True
    ):
        size = np.stack(
            [np.bincount(group[rows][cell], minlength=found.shape[1]) for cell in cells]
        )
        total = size.sum(axis=1, keepdims=True)
        number = np.maximum(count, 2)[:, None]
        found += influence * (number - 1) / number * total / np.maximum(total - size, 1)
    return found


def pool_datasets(found: Sequence[Aucs]) -> Aucs:
    """Join the datasets of one seed, weighted by members, as in the report's row `all`."""
    members = np.sum([one.members for one in found], axis=0)
    shares = [one.members / np.maximum(members, 1) for one in found]
    parts = [np.nan_to_num(one.value) * share for one, share in zip(found, shares, strict=True)]
    moved = [one.influence * share[:, :, None] for one, share in zip(found, shares, strict=True)]
    return Aucs(
        np.where(members > 0, np.sum(parts, axis=0), np.nan),
        np.sum(moved, axis=0),
        np.sum([one.groups for one in found], axis=0),
        members,
        np.sum([one.nonmembers for one in found], axis=0),
    )


def seed_aucs(rows: Rows, cells: Sequence[Mask], n_groups: int) -> Aucs:
    """Return the AUC of each cell over all datasets, one seed; NaN where there is none."""
    found = dataset_aucs(rows, cells, n_groups)
    return pool_datasets(list(found.values())) if found else no_aucs(len(cells), n_groups)


def no_aucs(count: int, n_groups: int) -> Aucs:
    """Return what a seed without any rows says."""
    zero = np.zeros((1, count), dtype=np.int64)
    return Aucs(np.full((1, count), np.nan), np.zeros((1, count, n_groups)), zero, zero, zero)


def stack_seeds(seeds: Sequence[Aucs]) -> Aucs:
    """Put the seeds of the same AUCs together."""
    return Aucs(*(np.concatenate(parts) for parts in zip(*seeds, strict=True)))


def stack_aucs(several: Sequence[Aucs]) -> Aucs:
    """Put AUCs of the same seeds side by side."""
    return Aucs(*(np.concatenate(parts, axis=1) for parts in zip(*several, strict=True)))


def combine(aucs: Aucs, weights: Floats) -> Joint:
    """Return linear combinations of AUCs with their covariance.

    Args:
        aucs: K of them.
        weights: [J, K].
    """
    there = np.isfinite(aucs.value).all(axis=1)
    by_seed = aucs.value[there] @ weights.T
    return join_seeds(by_seed, np.einsum("jk,skg->sjg", weights, aucs.influence[there]))


def join_seeds(values: Floats, influence: Floats) -> Joint:
    """Return numbers that each seed has, [S, J], with influence values [S, J, groups]."""
    count = len(values)
    if not count:
        wanted = values.shape[1]
        nothing = np.full((wanted, wanted), np.nan)
        return Joint(np.full(wanted, np.nan), nothing, np.ones(wanted), 0)
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
        found = 3 * squares.sum(axis=1) ** 2 / fourth - 1
    most = np.maximum((squares > 0).sum(axis=1) - 2, 1)
    return np.where(fourth > 0, np.clip(found, 1.0, most), 1.0)


def _without_negative(matrix: Floats, scale: Floats) -> Floats:
    """Return the nearest matrix whose variances are not negative in any direction.

    Args:
        matrix: [J, J].
        scale: of each of the J numbers, [J].
    """
    unit = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2 / np.outer(unit, unit))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T * np.outer(unit, unit)
