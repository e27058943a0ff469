"""Paired differences of AUC between two runs: the same rows under two models.

Influence values of both AUCs are subtracted row by row and summed by group, so that what the rows
have in common cancels; then as everywhere (`analysis.uncertainty`). Cost: about 1 ms for
400 rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from analysis.intervals.estimate import degenerate_reason
from analysis.intervals.influence import Sample, Side, auc_sample, pack_groups, trend_sample
from analysis.tables import POOLED
from analysis.uncertainty.column_intervals import difference_intervals
from analysis.uncertainty.samples import ColumnSample, DatasetSample


class ScoredRow(NamedTuple):
    """One row under one model."""

    seed: int
    example_id: str
    dataset: str
    group: str
    member: bool
    score: float


class PairedDifference(NamedTuple):
    """Two AUCs on the same rows, and how far the second is above the first."""

    first: float
    second: float
    value: float
    low: float
    high: float
    about: str
    """`any seed`, `this model`, …; or `none: ` and why there is no interval."""
    n_members: int
    """Summed over the seeds."""
    n_nonmembers: int
    n_seeds: int


class _Samples(NamedTuple):
    """One dataset of one seed."""

    seed: int
    dataset: str
    first: Sample
    second: Sample
    members: int
    nonmembers: int
    groups: int
    """Of the dataset, over all seeds."""


def paired_differences(
    first: Sequence[ScoredRow], second: Sequence[ScoredRow], *, confidence: float
) -> dict[str, PairedDifference]:
    """Return the differences by dataset, and over all of them (`all`); empty without shared rows.

    Rows are shared that have one seed, one example, one dataset and one side in both runs. A group
    is one of the first run.
    """
    other = {(row.seed, row.example_id): row for row in second}
    shared: dict[str, list[tuple[ScoredRow, ScoredRow]]] = {}
    for row in first:
        match = other.get((row.seed, row.example_id))
        if match is not None and (match.member, match.dataset) == (row.member, row.dataset):
            shared.setdefault(row.dataset, []).append((row, match))
    samples = [one for dataset, pairs in shared.items() for one in _samples(dataset, pairs)]
    if not samples:
        return {}
    found = {POOLED: _difference(samples, None, confidence)}
    for dataset in dict.fromkeys(one.dataset for one in samples):
        found[dataset] = _difference(samples, dataset, confidence)
    return found


def _samples(dataset: str, pairs: Sequence[tuple[ScoredRow, ScoredRow]]) -> list[_Samples]:
    """Return one entry a seed that can be compared."""
    # One group is one number in every seed: rows of a text are not independent over seeds.
    ours = [first for first, _ in pairs]
    numbers, count = pack_groups([row.group for row in ours])
    found = []
    for seed in sorted({row.seed for row in ours}):
        rows = [at for at, row in enumerate(ours) if row.seed == seed]
        inside = [at for at in rows if ours[at].member]
        outside = [at for at in rows if not ours[at].member]
        scores = [np.array([one.score for one in side], dtype=np.float64)
                  for side in zip(*pairs, strict=True)]  # fmt: skip
        comparable = all(
            degenerate_reason(one[inside], one[outside]) in (None, "all scores are equal")
            and len(set(numbers[inside].tolist())) > 1
            and len(set(numbers[outside].tolist())) > 1
            for one in scores
        )
        if not comparable:
            continue
        within = np.ones((1, len(inside)), dtype=bool)
        one, two = (
            auc_sample(
                Side(score[inside], numbers[inside]), Side(score[outside], numbers[outside]),
                within, count,
            )
            for score in scores
        )  # fmt: skip
        found.append(_Samples(seed, dataset, one, two, len(inside), len(outside), count))
    return found


def _difference(
    samples: Sequence[_Samples], dataset: str | None, confidence: float
) -> PairedDifference:
    """Return the difference in one dataset; None stands for all together."""
    one, two = (_column(samples, second=second) for second in (False, True))
    first, second = one.auc(dataset), two.auc(dataset)
    (gaps,) = difference_intervals([two], one, dataset, confidence=confidence, wanted=[0])
    found = gaps[0]
    if first is None or second is None:
        raise LookupError(f"no rows of {dataset}")
    rows = [sample for sample in samples if dataset in (None, sample.dataset)]
    return PairedDifference(
        first=float(first.value[0]),
        second=float(second.value[0]),
        value=float(second.value[0] - first.value[0]),
        low=found.low,
        high=found.high,
        about=found.about,
        n_members=sum(sample.members for sample in rows),
        n_nonmembers=sum(sample.nonmembers for sample in rows),
        n_seeds=int(first.seeds[0]),
    )


def _column(samples: Sequence[_Samples], *, second: bool) -> ColumnSample:
    """Return one run's AUCs as the analysis has them: for each seed, by dataset."""
    seeds: dict[int, dict[str, DatasetSample]] = {}
    for one in samples:
        sample = one.second if second else one.first
        nobody = Side(np.zeros(0), np.zeros(0, dtype=np.int64))
        trend, pairs = trend_sample(nobody, np.zeros(0, dtype=np.int64), one.groups)
        seeds.setdefault(one.seed, {})[one.dataset] = DatasetSample(
            auc=sample,
            members=np.array([float(one.members)]),
            rates=(),
            alone=(),
            trend=trend,
            pairs=np.array([pairs]),
        )
    return ColumnSample(tuple(seeds.values()))
