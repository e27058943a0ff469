"""Every cell of one column with its influence values: what intervals, differences and bands need.

The values are those of `analysis.auc_cells`, found again without replicates: AUC and TPR of each
dataset and number of copies, and the trend over copies. Each dataset of each seed gives one
`Sample`; `analysis.intervals.clustered` joins them. Cost: 2 ms for 400 rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.arm import LoadedArm
from analysis.copy_bins import CopiesCell
from analysis.intervals.clustered import Clustered, Weighted, cluster
from analysis.intervals.influence import (
    Sample,
    Side,
    auc_sample,
    difference,
    tpr_sample,
    trend_sample,
)
from analysis.metrics import Floats, supports_rate

Mask = npt.NDArray[np.bool_]
Found = tuple[Sample, Floats] | None


class GroupNumbers(NamedTuple):
    """The groups of one arm as numbers: one group has one number in every seed of a cohort."""

    of_row: npt.NDArray[np.int64]
    """[n_examples], counted from 0 within each dataset."""
    counts: Mapping[str, int]
    """Groups of each dataset over all seeds."""


class DatasetSample(NamedTuple):
    """One dataset of one seed."""

    auc: Sample | None
    """K = cells; None where there is no comparison."""
    members: Floats
    """[K]: rows of each cell."""
    rates: tuple[Sample | None, ...]
    """By false-positive rate; None where the seed's non-members do not support it."""
    alone: tuple[bool, ...]
    """By rate: whether this dataset's own non-members support it."""
    trend: Sample
    pairs: float
    """Pairs of members whose copies differ."""
    grouped: bool
    """Whether some group has several rows."""


@dataclass(frozen=True)
class ColumnSample:
    """One column of one cohort. A dataset of None stands for all of them together."""

    seeds: tuple[Mapping[str, DatasetSample], ...]
    """For each seed, by dataset."""
    _aucs: dict[str | None, Clustered | None] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What was asked for before: differences to many columns ask again and again."""

    def auc(self, dataset: str | None) -> Clustered | None:
        """Return the AUCs of all cells; None without any rows."""
        if dataset not in self._aucs:
            self._aucs[dataset] = self._joined(
                dataset, lambda one: None if one.auc is None else (one.auc, one.members)
            )
        return self._aucs[dataset]

    @staticmethod
    def find_aucs(samples: "Sequence[ColumnSample]", dataset: str | None) -> None:
        """Find what `auc` will be asked of many columns, all at once: 20 times as fast."""
        alike: dict[tuple[Any, ...], list[ColumnSample]] = {}
        for sample in samples:
            if dataset not in sample._aucs:
                shape = tuple(
                    tuple((name, one.auc is None, len(one.members)) for name, one in seed.items())
                    for seed in sample.seeds
                )
                alike.setdefault(shape, []).append(sample)
        for same in alike.values():
            found = _stacked(same)._joined(
                dataset, lambda one: None if one.auc is None else (one.auc, one.members)
            )
            cells = 0 if found is None else len(found.value) // len(same)
            for at, sample in enumerate(same):
                sample._aucs[dataset] = (
                    None if found is None else found.part(at * cells, (at + 1) * cells)
                )

    def rate(self, dataset: str | None, index: int) -> Clustered | None:
        """Return the TPRs of all cells at one rate."""

        def found(one: DatasetSample) -> Found:
            sample = one.rates[index]
            if sample is None or (dataset is not None and not one.alone[index]):
                return None
            return sample, one.members

        return self._joined(dataset, found)

    def trend(self, dataset: str | None) -> Clustered | None:
        """Return Somers' D of score given copies."""
        return self._joined(
            dataset, lambda one: (one.trend, np.array([one.pairs])) if one.pairs else None
        )

    def grouped(self, dataset: str | None) -> bool:
        """Return whether some group has several rows."""
        return any(
            one.grouped
            for seed in self.seeds
            for name, one in seed.items()
            if dataset in (None, name)
        )

    def minus(self, other: "ColumnSample") -> "ColumnSample":
        """Return the differences of AUC and of trend to another column on the same rows."""
        seeds = []
        for mine, theirs in zip(self.seeds, other.seeds, strict=True):
            found = {}
            for name in mine.keys() & theirs.keys():
                one, two = mine[name], theirs[name]
                if one.auc is not None and two.auc is not None:
                    found[name] = one._replace(
                        auc=difference(one.auc, two.auc),
                        trend=difference(one.trend, two.trend),
                        rates=(),
                    )
            seeds.append(dict(sorted(found.items())))
        return ColumnSample(tuple(seeds))

    def _joined(
        self, dataset: str | None, part: Callable[[DatasetSample], Found]
    ) -> Clustered | None:
        seeds = []
        for seed in self.seeds:
            named = [(name, part(one)) for name, one in seed.items() if dataset in (None, name)]
            seeds.append([Weighted(name, *found) for name, found in named if found is not None])
        return cluster(seeds) if any(seeds) else None


def _stacked(samples: Sequence[ColumnSample]) -> ColumnSample:
    """Return columns of the same rows as one column of as many cells as they have together."""
    seeds = []
    for parts in zip(*(sample.seeds for sample in samples), strict=True):
        found = {}
        for name, first in parts[0].items():
            same = [part[name] for part in parts]
            aucs = [one.auc for one in same if one.auc is not None]
            joined = (
                None
                if not aucs
                else Sample(
                    np.concatenate([one.value for one in aucs]),
                    *(np.concatenate([one[at] for one in aucs], axis=1) for at in (1, 2, 3)),
                )
            )
            members = np.concatenate([one.members for one in same])
            found[name] = first._replace(auc=joined, members=members)
        seeds.append(found)
    return ColumnSample(tuple(seeds))


class DatasetRows(NamedTuple):
    """The rows of one dataset of one seed under one column."""

    loaded: LoadedArm
    groups: GroupNumbers
    dataset: str
    inside: Mask
    """Which examples are members, [n_examples]."""
    outside: Mask
    scores: Floats
    """[n_examples]."""


def sample_dataset(
    rows: DatasetRows,
    cells: Sequence[CopiesCell],
    rates: Sequence[float],
    *,
    total_nonmembers: int,
    comparable: bool,
) -> DatasetSample:
    """Return what one dataset of one seed says of a column.

    Args:
        rows: which.
        cells: numbers of copies.
        rates: false-positive rates.
        total_nonmembers: of the seed's datasets together.
        comparable: whether the two sides can be compared at all.
    """
    n_groups = rows.groups.counts[rows.dataset]
    copies = rows.loaded.copies[rows.inside]
    members = Side(rows.scores[rows.inside], rows.groups.of_row[rows.inside])
    nonmembers = Side(rows.scores[rows.outside], rows.groups.of_row[rows.outside])
    within = np.array([cell.holds(copies) for cell in cells], dtype=bool)
    if rows.loaded.arm.copies is None:
        copies = np.zeros(0, dtype=np.int64)
    # A group has one number of copies, so each number is a stratum of whole groups.
    strata = copies if rows.loaded.arm.fixed_levels and len(copies) else None
    if strata is not None and _mixed(members.groups, strata):
        strata = None
    trend, pairs = trend_sample(members if len(copies) else Side(*_NONE), copies, n_groups, strata)
    both = np.concatenate([members.groups, nonmembers.groups])
    return DatasetSample(
        auc=auc_sample(members, nonmembers, within, n_groups, strata) if comparable else None,
        members=within.sum(axis=1).astype(np.float64),
        rates=tuple(
            tpr_sample(members, nonmembers, within, n_groups, rate, strata)
            if comparable and supports_rate(rate, total_nonmembers)
            else None
            for rate in rates
        ),
        alone=tuple(supports_rate(rate, len(nonmembers.scores)) for rate in rates),
        trend=trend,
        pairs=pairs,
        grouped=len(set(both.tolist())) < len(both),
    )


def _mixed(groups: npt.NDArray[np.int64], strata: npt.NDArray[np.int64]) -> bool:
    """Say whether some group lies in two strata: a copy of one of its rows was cut off."""
    pairs = np.unique(np.stack([groups, strata]), axis=1)
    return bool(len(np.unique(groups)) < pairs.shape[1])


_NONE = (np.zeros(0), np.zeros(0, dtype=np.int64))


def number_groups(arms: Sequence[LoadedArm]) -> list[GroupNumbers]:
    """Number the groups of all arms of a cohort, dataset by dataset."""
    numbers: dict[str, dict[str, int]] = {}
    found = []
    for arm in arms:
        of_row = np.zeros(len(arm.examples), dtype=np.int64)
        for row, (dataset, group) in enumerate(
            zip(arm.dataset.tolist(), arm.group.tolist(), strict=True)
        ):
            known = numbers.setdefault(dataset, {})
            of_row[row] = known.setdefault(group, len(known))
        found.append(of_row)
    counts = {dataset: len(known) for dataset, known in numbers.items()}
    return [GroupNumbers(of_row, counts) for of_row in found]
