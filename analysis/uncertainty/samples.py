"""Every cell of one column with its influence values: what intervals, differences and bands need.

The values that `analysis.auc_cells` puts into the tables come from here: AUC and TPR of each
dataset and number of copies, and the trend over copies. Each dataset of each seed gives one
`Sample`; `analysis.intervals.clustered` joins them. Cost: 10 ms for 25 columns of 200 rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.arm import LoadedArm
from analysis.copy_bins import CopiesCell
from analysis.intervals.clustered import Clustered, Part, cluster
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
Number = Literal["auc", "trend"] | int
"""`auc`, `trend`, or which false-positive rate a TPR is at."""


class GroupNumbers(NamedTuple):
    """The groups of one arm as numbers: one group has one number in every seed of a cohort."""

    of_row: npt.NDArray[np.int64]
    """[n_examples], counted from 0 within each dataset."""
    counts: Mapping[str, int]
    """Groups of each dataset over all seeds."""


class DatasetSample(NamedTuple):
    """One dataset of one seed, for C columns on the same rows and K = C * cells numbers."""

    auc: Sample | None
    """K numbers, column by column; None where there is no comparison."""
    members: Floats
    """[K]: rows of each cell."""
    rates: tuple[Sample | None, ...]
    """By false-positive rate; None where the seed's non-members do not support it."""
    alone: tuple[bool, ...]
    """By rate: whether this dataset's own non-members support it."""
    trend: Sample
    """C numbers."""
    pairs: Floats
    """Pairs of members whose copies differ, [C]; all zero or none."""

    def column(self, at: int) -> "DatasetSample":
        """Return one of the columns."""
        cells = len(self.members) // len(self.pairs)
        mine = slice(at * cells, (at + 1) * cells)
        return self._replace(
            auc=None if self.auc is None else self.auc.part(mine),
            members=self.members[mine],
            rates=tuple(None if one is None else one.part(mine) for one in self.rates),
            trend=self.trend.part(slice(at, at + 1)),
            pairs=self.pairs[at : at + 1],
        )

    def form(self) -> tuple[Any, ...]:
        """Return what must be one and the same in columns that are stacked."""
        rates = tuple(one is None for one in self.rates)
        return self.auc is None, len(self.members), rates, self.alone, bool(self.pairs.any())


@dataclass(frozen=True)
class ColumnSample:
    """One column of one cohort. A dataset of None stands for all of them together.

    What is asked of many columns is found for all at once (`find`), stacked: 20 times as fast as
    one at a time, and the same but for the order of sums.
    """

    seeds: tuple[Mapping[str, DatasetSample], ...]
    """For each seed, by dataset."""
    _found: dict[tuple[Number, str | None], Clustered | None] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What was asked for before: differences to many columns ask again and again."""

    def auc(self, dataset: str | None) -> Clustered | None:
        """Return the AUCs of all cells; None without any rows."""
        return self.number("auc", dataset)

    def trend(self, dataset: str | None) -> Clustered | None:
        """Return Somers' D of score given copies."""
        return self.number("trend", dataset)

    @staticmethod
    def find(samples: "Sequence[ColumnSample]", number: Number, dataset: str | None) -> None:
        """Find one number of many columns, so that asking each for it costs nothing."""
        missing = [one for one in samples if (number, dataset) not in one._found]
        for places in alike(missing):
            same = [missing[at] for at in places]
            parts = weighted_parts(stacked(same), number, dataset)
            found = cluster(parts) if any(parts) else None
            numbers = 0 if found is None else len(found.value) // len(same)
            for at, sample in enumerate(same):
                sample._found[number, dataset] = (
                    None if found is None else found.part(at * numbers, (at + 1) * numbers)
                )

    def number(self, number: Number, dataset: str | None) -> Clustered | None:
        """Return one number of all cells; None where no dataset has a part in it."""
        if (number, dataset) not in self._found:
            ColumnSample.find([self], number, dataset)
        return self._found[number, dataset]


def weighted_parts(
    sample: ColumnSample, number: Number, dataset: str | None
) -> list[dict[str, Part]]:
    """Return what each dataset of each seed says of a number, and with what weight."""
    seeds = []
    for seed in sample.seeds:
        named = [
            (name, _part(one, number, alone=dataset is not None))
            for name, one in seed.items()
            if dataset in (None, name)
        ]
        seeds.append({name: Part(*found) for name, found in named if found is not None})
    return seeds


def _part(one: DatasetSample, number: Number, *, alone: bool) -> tuple[Sample, Floats] | None:
    """Return a number of one dataset with its weight; None where it has no part in it."""
    if number == "trend":
        return (one.trend, one.pairs) if one.pairs.any() else None
    if number == "auc":
        return None if one.auc is None else (one.auc, one.members)
    rate = one.rates[number]
    return None if rate is None or (alone and not one.alone[number]) else (rate, one.members)


def alike(*columns: Sequence[ColumnSample]) -> list[list[int]]:
    """Return the places of columns that can be stacked together.

    Args:
        columns: those of one place, of each sequence, go together.
    """
    found: dict[tuple[Any, ...], list[int]] = {}
    for at, together in enumerate(zip(*columns, strict=True)):
        form = tuple(
            tuple((name, one.form()) for name, one in seed.items())
            for sample in together
            for seed in sample.seeds
        )
        found.setdefault(form, []).append(at)
    return list(found.values())


def stacked(samples: Sequence[ColumnSample]) -> ColumnSample:
    """Return columns that are alike as one of as many numbers as they have together."""
    if len(samples) == 1:
        return ColumnSample(samples[0].seeds)
    return ColumnSample(
        tuple(
            {name: _joined([part[name] for part in parts]) for name in parts[0]}
            for parts in zip(*(sample.seeds for sample in samples), strict=True)
        )
    )


def _joined(parts: Sequence[DatasetSample]) -> DatasetSample:
    def together(samples: Sequence[Sample | None]) -> Sample | None:
        there = [one for one in samples if one is not None]
        return Sample.joined(there) if there else None

    return parts[0]._replace(
        auc=together([one.auc for one in parts]),
        members=np.concatenate([one.members for one in parts]),
        rates=tuple(together(same) for same in zip(*(one.rates for one in parts), strict=True)),
        trend=Sample.joined([one.trend for one in parts]),
        pairs=np.concatenate([one.pairs for one in parts]),
    )


def auc_gaps(
    samples: Sequence[ColumnSample],
    other: ColumnSample,
    dataset: str | None,
    cells: Sequence[int],
) -> list[Clustered | None]:
    """Return what the AUCs of columns on the same rows differ by from another's.

    Args:
        samples: the columns.
        other: the other one.
        dataset: which; None for all together.
        cells: which cells of each column.
    """
    found: list[Clustered | None] = [None] * len(samples)
    wanted = np.array(cells, dtype=np.int64)
    for places in alike(samples):
        parts = [
            _gaps([samples[at].seeds[s] for at in places], theirs, dataset, wanted)
            for s, theirs in enumerate(other.seeds)
        ]
        if any(parts):
            gap = cluster(parts)
            for nth, at in enumerate(places):
                found[at] = gap.part(nth * len(wanted), (nth + 1) * len(wanted))
    return found


def _gaps(
    columns: Sequence[Mapping[str, DatasetSample]],
    theirs: Mapping[str, DatasetSample],
    dataset: str | None,
    cells: npt.NDArray[np.int64],
) -> dict[str, Part]:
    """Return the differences of one seed, by dataset."""
    found = {}
    for name in sorted(columns[0].keys() & theirs.keys()):
        mine = [seed[name].auc for seed in columns]
        aucs, base = [one.part(cells) for one in mine if one is not None], theirs[name].auc
        if dataset in (None, name) and aucs and base is not None:
            same = Sample.joined([base.part(cells)] * len(aucs))
            weight = np.concatenate([seed[name].members[cells] for seed in columns])
            found[name] = Part(difference(Sample.joined(aucs), same), weight)
    return found


def cell_gaps(
    samples: Sequence[ColumnSample], dataset: str | None, pairs: Sequence[tuple[int, int]]
) -> list[Clustered | None]:
    """Return what AUCs of one cell differ by from those of another cell of the same column.

    Members differ, non-members are the same: what the latter do to both cancels.

    Args:
        samples: the columns.
        dataset: which; None for all together.
        pairs: the cell and the other one.
    """
    found: list[Clustered | None] = [None] * len(samples)
    for places in alike(samples):
        parts = weighted_parts(stacked([samples[at] for at in places]), "auc", dataset)
        if not any(parts):
            continue
        cells = len(next(part.weight for seed in parts for part in seed.values())) // len(places)
        start = cells * np.arange(len(places))[:, None]
        ones, others = ((start + np.array(side)).ravel() for side in zip(*pairs, strict=True))
        gap = cluster([_cell_gaps(seed, ones, others) for seed in parts])
        for nth, at in enumerate(places):
            found[at] = gap.part(nth * len(pairs), (nth + 1) * len(pairs))
    return found


def _cell_gaps(
    seed: Mapping[str, Part], ones: npt.NDArray[np.int64], others: npt.NDArray[np.int64]
) -> dict[str, Part]:
    """Return the parts of one seed's datasets in gaps, which are their mean.

    A dataset's share differs between two cells, so it is in the parts and not in their weights.
    """
    parts = [*seed.values()]
    if not parts:
        return {}
    there = [np.where(np.isfinite(part.sample.value), part.weight, 0.0) for part in parts]
    total = np.sum(there, axis=0)
    shares = [one / np.where(total > 0, total, np.nan) for one in there]
    pooled = np.sum(
        [
            share * np.nan_to_num(part.sample.value)
            for part, share in zip(parts, shares, strict=True)
        ],
        axis=0,
    )
    groups = np.sum([part.sample.groups for part in parts], axis=0)
    fewest = np.minimum(groups[:, ones], groups[:, others])
    found: dict[str, Part] = {}
    for (name, part), share in zip(seed.items(), shares, strict=True):
        sample, factor = part.sample, np.nan_to_num(share) * len(parts)
        # As in `cluster`: how far a group that is alone lies off stands for its spread.
        alone = (sample.groups[0] == 1) & (share > 0) & (share < 1)
        off = np.where(alone, np.nan_to_num(sample.value) - pooled, 0.0)
        influence = np.concatenate(
            [sample.influence, np.stack([off, np.zeros_like(off)])[:, :, None]], axis=2
        )
        influence = influence * factor[:, None]
        value = np.where(total > 0, factor * np.nan_to_num(sample.value), np.nan)
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


class DatasetRows(NamedTuple):
    """The rows of one dataset of one seed under columns that are measured on the same ones."""

    loaded: LoadedArm
    groups: GroupNumbers
    dataset: str
    inside: Mask
    """Which examples are members, [n_examples]."""
    outside: Mask
    scores: Floats
    """[columns, n_examples]."""

    def sides(self) -> tuple[Side, Side]:
        """Return the members and the non-members."""
        found = [
            Side(self.scores[:, rows], self.groups.of_row[rows])
            for rows in (self.inside, self.outside)
        ]
        return found[0], found[1]

    def within(self, cells: Sequence[CopiesCell]) -> Mask:
        """Return which members each cell holds, [cells, members]."""
        copies = self.loaded.copies[self.inside]
        return np.array([cell.holds(copies) for cell in cells], dtype=bool)


def sample_dataset(
    rows: DatasetRows,
    cells: Sequence[CopiesCell],
    rates: Sequence[float],
    *,
    total_nonmembers: int,
    comparable: bool,
) -> DatasetSample:
    """Return what one dataset of one seed says of columns.

    Args:
        rows: which.
        cells: numbers of copies.
        rates: false-positive rates.
        total_nonmembers: of the seed's datasets together.
        comparable: whether the two sides can be compared at all.
    """
    n_groups = rows.groups.counts[rows.dataset]
    copies = rows.loaded.copies[rows.inside]
    members, nonmembers = rows.sides()
    within, columns = rows.within(cells), len(rows.scores)
    trending = members
    if rows.loaded.arm.copies is None:
        copies = np.zeros(0, dtype=np.int64)
        trending = Side(np.zeros((columns, 0)), copies)
    # A group has one number of copies, so each number is a stratum of whole groups.
    strata = copies if rows.loaded.arm.fixed_levels and len(copies) else None
    if strata is not None and _mixed(members.groups, strata):
        strata = None
    trend, pairs = trend_sample(trending, copies, n_groups, strata)
    return DatasetSample(
        auc=auc_sample(members, nonmembers, within, n_groups, strata) if comparable else None,
        members=np.tile(within.sum(axis=1).astype(np.float64), columns),
        rates=tuple(
            tpr_sample(members, nonmembers, within, n_groups, rate, strata)
            if comparable and supports_rate(rate, total_nonmembers)
            else None
            for rate in rates
        ),
        alone=tuple(supports_rate(rate, len(nonmembers.groups)) for rate in rates),
        trend=trend,
        pairs=np.full(columns, pairs),
    )


def _mixed(groups: npt.NDArray[np.int64], strata: npt.NDArray[np.int64]) -> bool:
    """Say whether some group lies in two strata: a copy of one of its rows was cut off."""
    pairs = np.unique(np.stack([groups, strata]), axis=1)
    return bool(len(np.unique(groups)) < pairs.shape[1])


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
