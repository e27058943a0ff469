"""The metrics of two runs side by side, with paired differences where both scored the same rows.

Arms are matched by their model and by the axes that either run sweeps (an axis of one is a setting
of the other), else by those that both sweep. A paired difference is that
of two AUCs on the very same rows: those of `test` in both runs, on the same side, with a score in
both, of members that had a copy in both, seed by seed. Influence values of both AUCs are subtracted
row by row and summed by group, so that what the rows have in common cancels; its interval is that
of the report's differences (`analysis.intervals`). Second minus first. Cost: about 1 ms for 400
rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arm import Cohort
from analysis.arm_labels import arm_words
from analysis.copy_bins import ALL
from analysis.findings import Findings, Row, group_by, question_table, split_by_cohort
from analysis.intervals.estimate import Estimate
from analysis.intervals.rows import EQUAL, Rows, auc_numbers, number_groups, unsupported
from analysis.settings import AnalysisSettings
from analysis.tables import AUC, POOLED
from inject.stream.exposures import seen_copy_counts

_CONTAMINATED = "contaminated"
_UNKNOWN_COPIES = frozenset({"retrained"})
"""Models that saw copies of some members, which a run's folder does not name."""
_KEY = ("dataset", "detector", "selection", "metric")
PLACE = ("arm", "label", "model", *_KEY)
"""The key of a compared number: `arm` is of the first run, and of the second, where it is
called otherwise; `label` is the same as text."""


@dataclass(frozen=True, kw_only=True)
class RunTables:
    """The tables of a run's folder that a comparison reads."""

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


Paired = tuple[Estimate, Estimate, Estimate]
"""Two AUCs on the same rows, and how far the second is above the first."""


class Matched(NamedTuple):
    """Two cohorts that are compared."""

    first: Findings
    second: Findings

    @property
    def label(self) -> str:
        """The arm's name."""
        return self._join_names(Cohort.label)

    @property
    def words(self) -> str:
        """The arm in words."""
        return self._join_names(lambda cohort: arm_words(cohort.axes))

    def _join_names(self, called: Callable[[Cohort], str]) -> str:
        names = dict.fromkeys(called(table.cohort) for table in self)
        return " / ".join(name or "the one arm" for name in names)


class ComparedMetrics(NamedTuple):
    """Everything that is compared."""

    numbers: Findings
    """The question `comparison`: each number in the `first` and in the `second` run, and their
    `difference` on the rows that both scored, with the two AUCs that it compares."""
    unmatched: tuple[str, ...]
    """Arms that only one run has, in words."""

    def places(self) -> list[dict[str, str]]:
        """Return the keys of each number, in order."""
        places = dict.fromkeys(tuple(row[name] for name in PLACE) for row in self.numbers.rows)
        return [dict(zip(PLACE, place, strict=True)) for place in places]

    def pooled_aucs(self) -> list[dict[str, str]]:
        """Return the keys of the AUCs over all datasets of the contaminated models, tuned
        if there is a choice: the numbers to read first."""
        selected = {"model": _CONTAMINATED, "dataset": POOLED, "metric": AUC}
        aucs = [
            place
            for place in self.places()
            if selected.items() <= place.items() and place["selection"] in ("tuned", "default")
        ]
        tuned = {(row["arm"], row["detector"]) for row in aucs if row["selection"] == "tuned"}
        return [
            row
            for row in aucs
            if row["selection"] == "tuned" or (row["arm"], row["detector"]) not in tuned
        ]


def compare_metrics(
    first: RunTables, second: RunTables, settings: AnalysisSettings
) -> ComparedMetrics:
    """Return the metrics of both runs, arm by arm."""
    pairs, unmatched = _match(first, second)
    rows = (row for pair in pairs for row in _rows(pair, first, second, settings))
    table = question_table("comparison", [], rows)
    return ComparedMetrics(Findings(table.to_pylist()), tuple(unmatched))


def _match(first: RunTables, second: RunTables) -> tuple[list[Matched], list[str]]:
    """Match cohorts that agree in their model and in every axis of either run, then of both."""
    sides = [{"": split_by_cohort(run.metrics, run.axes)} for run in (first, second)]
    pairs, unmatched = [], []
    either = list(dict.fromkeys([*first.axes, *second.axes]))
    for axes in (either, [axis for axis in first.axes if axis in second.axes]):
        sides = [
            group_by((table for tables in side.values() for table in tables), _key(run, axes))
            for run, side in zip((first, second), sides, strict=True)
        ]
        for key in [key for key, tables in sides[0].items() if len(tables) == 1]:
            if len(sides[1].get(key, [])) == 1:
                pairs.append(Matched(sides[0].pop(key)[0], sides[1].pop(key)[0]))
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        tables, two = (side.get(key, []) for side in sides)
        unmatched += _explain(first, tables, second, len(two))
        unmatched += _explain(second, two, first, len(tables))
    return pairs, unmatched


def _explain(run: RunTables, tables: Sequence[Findings], other: RunTables, alike: int) -> list[str]:
    """Return the reason for each arm without a counterpart in the other run."""
    why = f"has {alike} arms like it" if alike else "has no such arm"
    labels = [" · ".join(x for x in (t.cohort.model, t.cohort.label()) if x) for t in tables]
    return [f"{run.name}: {label} ({other.name} {why})" for label in labels]


def _key(run: RunTables, axes: Sequence[str]) -> Callable[[Findings], str]:
    """Return the function that gives a cohort's model with its values of some axes."""

    def key(table: Findings) -> str:
        values = {**run.fixed, **dict(table.cohort.axes)}
        return "\0".join([table.cohort.model, *(values.get(axis, "") for axis in axes)])

    return key


def _rows(
    pair: Matched, first: RunTables, second: RunTables, settings: AnalysisSettings
) -> Iterator[Row]:
    model = pair.first.cohort.model
    runs = zip((first, second), pair, strict=True) if model not in _UNKNOWN_COPIES else ()
    scored = [scored_rows(run, table.cohort) for run, table in runs] or [{}, {}]
    keys = dict.fromkeys(
        tuple(row[name] for name in _KEY)
        for table in pair
        for row in table.where(copies=ALL, variant=ALL).rows
        if row["metric"] == AUC or row["metric"].startswith("tpr@")
    )
    differences: dict[tuple[str, str], Mapping[str, Paired]] = {}
    for place in (dict(zip(_KEY, key, strict=True)) for key in keys):
        column = (place["detector"], place["selection"])
        if column not in differences:
            rows = [of_run.get(column, []) for of_run in scored]
            differences[column] = paired_differences(*rows, confidence=settings.confidence)
        head = {"arm": pair.label, "label": pair.words, "model": model, **place}
        for run, table in zip(("first", "second"), pair, strict=True):
            if (row := table.row(**place)) is not None:
                yield {**row, **head, "run": run}
        paired = differences[column].get(place["dataset"])
        if paired is not None and place["metric"] == AUC:
            first_auc, second_auc, gap = paired
            aucs = {"first": first_auc.value, "second": second_auc.value}
            yield {**head, "run": "difference", **aucs, **gap.row()}


def scored_rows(run: RunTables, cohort: Cohort) -> dict[tuple[str, str], list[ScoredRow]]:
    """Return the scored test rows of a cohort's models by detector and selection.

    Members without a copy are excluded if copies have a meaning.
    """
    of_cohort = cohort.columns()
    columns = ["seed", "example_id", "dataset", "group", "side", "split"]
    table = run.examples
    # Present if pools differ between arms.
    for axis in of_cohort.keys() & {*table.column_names}:
        table = table.filter(pc.equal(table[axis], of_cohort[axis]))
    examples = {
        (row["seed"], row["example_id"]): row
        for row in table.select(columns).to_pylist()
        if row["split"] == "test"
    }
    copies = _copies(run, cohort) if cohort.model == _CONTAMINATED else None
    by_column: dict[tuple[str, str], list[ScoredRow]] = {}
    for row in run.scores.to_pylist():
        if row["model"] != cohort.model or any(row[k] != v for k, v in of_cohort.items()):
            continue
        seed, name, score = row["seed"], row["example_id"], row["score"]
        example = examples.get((seed, name))
        if example is None or score is None or score != score:
            continue
        member = example["side"] == "member"
        if member and copies is not None and not copies.get(seed, {}).get(name):
            continue
        scored = ScoredRow(seed, name, example["dataset"], example["group"], member, score)
        by_column.setdefault((row["detector"], row["selection"]), []).append(scored)
    return by_column


def _copies(run: RunTables, cohort: Cohort) -> dict[int, Mapping[str, int]]:
    """Return the realised copies of a contaminated cohort's members, by seed."""
    table = run.exposures
    for axis, value in cohort.axes:
        table = table.filter(pc.equal(table[axis], value))
    return {
        seed: seen_copy_counts(table.filter(pc.equal(table["seed"], seed)))
        for seed in table["seed"].unique().to_pylist()
    }


def paired_differences(
    first: Sequence[ScoredRow], second: Sequence[ScoredRow], *, confidence: float
) -> dict[str, Paired]:
    """Return the differences by dataset, and over all of them (`all`); empty without shared rows.

    Rows are shared that have one seed, one example, one dataset and one side in both runs. A group
    is one of the first run.
    """
    other = {(row.seed, row.example_id): row for row in second}
    shared = []
    for row in sorted(first, key=lambda row: row.seed):
        match = other.get((row.seed, row.example_id))
        if match is not None and (match.member, match.dataset) == (row.member, row.dataset):
            shared.append((row, match))
    rows = _rows_of([row for row, _ in shared])
    scores = [np.array([pair[run].score for pair in shared]) for run in (0, 1)]
    for seed in rows.places:
        for at in seed.values():
            if not all(unsupported(rows, own, at) in (None, EQUAL) for own in scores):
                scores[0][at] = scores[1][at] = np.nan
    left, right = (auc_numbers(rows, own) for own in scores)
    differences = {}
    for dataset in (None, *dict.fromkeys(name for seed in left.seeds for name in seed)):
        several = [n.estimates(dataset, confidence=confidence) for n in (left, right, right - left)]
        for first_value, second_value, gap in zip(*several, strict=True):
            # The two that are shown, to the last bit.
            gap = gap._replace(value=second_value.value - first_value.value)
            differences[dataset or POOLED] = first_value, second_value, gap
    return differences


def _rows_of(shared: Sequence[ScoredRow]) -> Rows:
    member = np.array([row.member for row in shared], dtype=bool)
    dataset = [row.dataset for row in shared]
    group = number_groups(dataset, [row.group for row in shared])
    rows = Rows.of(group, seed=[row.seed for row in shared], member=member)
    return replace(rows, dataset=np.array(dataset, dtype=object))
