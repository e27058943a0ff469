"""The metrics of two runs side by side, with paired differences where both scored the same rows.

Arms are matched by their model and by the axes that either run sweeps (an axis of one is a setting
of the other), else by those that both sweep. A paired difference is that
of two AUCs on the very same rows: those of `test` in both runs, on the same side, with a score in
both, of members that had a copy in both, seed by seed. Influence values of both AUCs are subtracted
row by row and summed by group, so that what the rows have in common cancels; its interval is that
of the report's differences (`analysis.intervals`). Second minus first. Cost: about 1 ms for 400
rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arm import Cohort, axis_column
from analysis.arm_words import arm_words
from analysis.intervals.estimate import degenerate_reason
from analysis.intervals.influence import Sample, Side, auc_sample, pack_groups, trend_sample
from analysis.metrics_table import Cell, CohortMetrics, split_by_cohort
from analysis.settings import AnalysisSettings
from analysis.tables import AUC, POOLED
from analysis.uncertainty.column_intervals import difference_intervals
from analysis.uncertainty.samples import ColumnSample, DatasetSample
from inject.stream.exposures import seen_copy_counts

_CONTAMINATED = "contaminated"
_UNKNOWN_COPIES = frozenset({"retrained"})
"""Models that saw copies of some members, which a run's folder does not name."""


@dataclass(frozen=True, kw_only=True)
class RunTables:
    """What a run's folder holds that a comparison reads."""

    name: str
    axes: Sequence[str]
    metrics: pa.Table
    scores: pa.Table
    examples: pa.Table
    exposures: pa.Table
    fixed: Mapping[str, str] = field(default_factory=dict)
    """The values that axes of the other run have in all arms of this one."""


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


class ComparedMetric(NamedTuple):
    """One number in both runs."""

    arm: str
    """Of the first run; and of the second, where it is called otherwise."""
    words: str
    """The same in words."""
    model: str
    dataset: str
    detector: str
    selection: str
    metric: str
    first: Cell | None
    second: Cell | None
    paired: PairedDifference | None
    """None for what is not an AUC, and where the runs share no rows."""


class Matched(NamedTuple):
    """Two cohorts that are compared."""

    first: CohortMetrics
    second: CohortMetrics

    @property
    def label(self) -> str:
        """What the arm is called."""
        return self._either(Cohort.label)

    @property
    def words(self) -> str:
        """The arm in words."""
        return self._either(lambda cohort: arm_words(cohort.axes))

    def _either(self, called: Callable[[Cohort], str]) -> str:
        names = dict.fromkeys(called(one.cohort) for one in self)
        return " / ".join(name or "the one arm" for name in names)


class ComparedMetrics(NamedTuple):
    """Everything that is compared."""

    rows: tuple[ComparedMetric, ...]
    unmatched: tuple[str, ...]
    """Arms that stand in one run alone, in words."""


def compare_metrics(
    first: RunTables, second: RunTables, settings: AnalysisSettings
) -> ComparedMetrics:
    """Return the metrics of both runs, arm by arm."""
    pairs, unmatched = _match(first, second)
    rows = [row for pair in pairs for row in _rows(pair, first, second, settings)]
    return ComparedMetrics(tuple(rows), tuple(unmatched))


def _match(first: RunTables, second: RunTables) -> tuple[list[Matched], list[str]]:
    """Match cohorts that agree in their model and in every axis of either run, then of both."""
    runs = first, second
    sides = [{"": split_by_cohort(run.metrics, run.axes)} for run in runs]
    pairs, unmatched = [], []
    either = dict.fromkeys([*first.axes, *second.axes])
    for axes in (list(either), [axis for axis in first.axes if axis in second.axes]):
        sides = [
            _by_key(run, [table for same in side.values() for table in same], axes)
            for run, side in zip(runs, sides, strict=True)
        ]
        for key in [key for key, one in sides[0].items() if len(one) == 1]:
            if len(sides[1].get(key, [])) == 1:
                pairs.append(Matched(sides[0].pop(key)[0], sides[1].pop(key)[0]))
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        one, two = (side.get(key, []) for side in sides)
        unmatched += _alone(first, one, second, len(two))
        unmatched += _alone(second, two, first, len(one))
    return pairs, unmatched


def _alone(
    run: RunTables, tables: Sequence[CohortMetrics], other: RunTables, alike: int
) -> list[str]:
    """Say of each arm why the other run has none to compare it with."""
    why = f"has {alike} arms like it" if alike else "has no such arm"
    labels = [" · ".join(x for x in (t.cohort.model, t.cohort.label()) if x) for t in tables]
    return [f"{run.name}: {label} ({other.name} {why})" for label in labels]


def _by_key(
    run: RunTables, tables: Iterable[CohortMetrics], axes: Sequence[str]
) -> dict[str, list[CohortMetrics]]:
    found: dict[str, list[CohortMetrics]] = {}
    for table in tables:
        values = {**run.fixed, **dict(table.cohort.axes)}
        key = "\0".join([table.cohort.model, *(values.get(axis, "") for axis in axes)])
        found.setdefault(key, []).append(table)
    return found


def _rows(
    pair: Matched, first: RunTables, second: RunTables, settings: AnalysisSettings
) -> Iterator[ComparedMetric]:
    model = pair.first.cohort.model
    known = model not in _UNKNOWN_COPIES
    ours = scored_rows(first, pair.first.cohort) if known else {}
    theirs = scored_rows(second, pair.second.cohort) if known else {}
    keys = dict.fromkeys(
        key
        for table in pair
        for key in table.cells
        if key.copies == "all" and key.variant == "all" and _is_compared(key.metric)
    )
    differences: dict[tuple[str, str], Mapping[str, PairedDifference]] = {}
    for key in keys:
        column = (key.detector, key.selection)
        if column not in differences:
            differences[column] = paired_differences(
                ours.get(column, []), theirs.get(column, []), confidence=settings.confidence
            )
        yield ComparedMetric(
            arm=pair.label,
            words=pair.words,
            model=model,
            dataset=key.dataset,
            detector=key.detector,
            selection=key.selection,
            metric=key.metric,
            first=pair.first.cells.get(key),
            second=pair.second.cells.get(key),
            paired=differences[column].get(key.dataset) if key.metric == AUC else None,
        )


def _is_compared(metric: str) -> bool:
    return metric == AUC or metric.startswith("tpr@")


def scored_rows(run: RunTables, cohort: Cohort) -> dict[tuple[str, str], list[ScoredRow]]:
    """Return the scored test rows of a cohort's models by detector and selection.

    Members without a copy are left out where copies have a meaning.
    """
    of_cohort = {axis_column(axis): value for axis, value in cohort.axes}
    examples = {
        (row["seed"], row["example_id"]): row
        for row in run.examples.select(
            ["seed", "example_id", "dataset", "group", "side", "split"]
        ).to_pylist()
        if row["split"] == "test"
    }
    copies = _copies(run, cohort) if cohort.model == _CONTAMINATED else None
    found: dict[tuple[str, str], list[ScoredRow]] = {}
    for row in run.scores.to_pylist():
        if row["model"] != cohort.model or any(row[k] != v for k, v in of_cohort.items()):
            continue
        example = examples.get((row["seed"], row["example_id"]))
        score = row["score"]
        if example is None or score is None or score != score:
            continue
        member = example["side"] == "member"
        if member and copies is not None and not copies.get(row["seed"], {}).get(row["example_id"]):
            continue
        found.setdefault((row["detector"], row["selection"]), []).append(
            ScoredRow(
                row["seed"], row["example_id"], example["dataset"], example["group"], member, score
            )
        )
    return found


def _copies(run: RunTables, cohort: Cohort) -> dict[int, Mapping[str, int]]:
    """Return the realised copies of a contaminated cohort's members, by seed."""
    table = run.exposures
    for axis, value in cohort.axes:
        table = table.filter(pc.equal(table[axis], value))
    return {
        seed: seen_copy_counts(table.filter(pc.equal(table["seed"], seed)))
        for seed in table["seed"].unique().to_pylist()
    }


def pooled_aucs(rows: Sequence[ComparedMetric]) -> list[ComparedMetric]:
    """Return the AUCs over all datasets of the contaminated models, tuned where there is a choice:
    what a reader looks at first."""
    wanted = [
        row
        for row in rows
        if (row.model, row.dataset, row.metric) == (_CONTAMINATED, POOLED, AUC)
        and row.selection in ("tuned", "default")
    ]
    tuned = {(row.arm, row.detector) for row in wanted if row.selection == "tuned"}
    return [r for r in wanted if r.selection == "tuned" or (r.arm, r.detector) not in tuned]


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
