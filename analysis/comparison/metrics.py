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
from analysis.arm_labels import arm_words
from analysis.copy_bins import ALL
from analysis.findings import Findings, Row, question_table, split_by_cohort
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
        tuned = {
            (auc_row["arm"], auc_row["detector"])
            for auc_row in aucs
            if auc_row["selection"] == "tuned"
        }
        return [
            auc_row
            for auc_row in aucs
            if auc_row["selection"] == "tuned" or (auc_row["arm"], auc_row["detector"]) not in tuned
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
    runs = first, second
    sides = [{"": split_by_cohort(run.metrics, run.axes)} for run in runs]
    pairs, unmatched = [], []
    either = dict.fromkeys([*first.axes, *second.axes])
    for axes in (list(either), [axis for axis in first.axes if axis in second.axes]):
        sides = [
            _group_by_key(
                run, [table for cohort_tables in side.values() for table in cohort_tables], axes
            )
            for run, side in zip(runs, sides, strict=True)
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


def _group_by_key(
    run: RunTables, tables: Iterable[Findings], axes: Sequence[str]
) -> dict[str, list[Findings]]:
    by_key: dict[str, list[Findings]] = {}
    for table in tables:
        values = {**run.fixed, **dict(table.cohort.axes)}
        key = "\0".join([table.cohort.model, *(values.get(axis, "") for axis in axes)])
        by_key.setdefault(key, []).append(table)
    return by_key


def _rows(
    pair: Matched, first: RunTables, second: RunTables, settings: AnalysisSettings
) -> Iterator[Row]:
    model = pair.first.cohort.model
    copies_known = model not in _UNKNOWN_COPIES
    scored = [
        scored_rows(run, table.cohort) if copies_known else {}
        for run, table in zip((first, second), pair, strict=True)
    ]
    keys = dict.fromkeys(
        tuple(row[name] for name in _KEY)
        for table in pair
        for row in table.where(copies=ALL, variant=ALL).rows
        if _is_compared(row["metric"])
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


def _is_compared(metric: str) -> bool:
    return metric == AUC or metric.startswith("tpr@")


def scored_rows(run: RunTables, cohort: Cohort) -> dict[tuple[str, str], list[ScoredRow]]:
    """Return the scored test rows of a cohort's models by detector and selection.

    Members without a copy are excluded if copies have a meaning.
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
    by_column: dict[tuple[str, str], list[ScoredRow]] = {}
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
        by_column.setdefault((row["detector"], row["selection"]), []).append(
            ScoredRow(
                row["seed"], row["example_id"], example["dataset"], example["group"], member, score
            )
        )
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
        several = zip(
            *(
                each.estimates(dataset, confidence=confidence)
                for each in (left, right, right - left)
            ),
            strict=True,
        )
        for first_value, second_value, gap in several:
            # The two that are shown, to the last bit.
            gap = gap._replace(value=second_value.value - first_value.value)
            differences[dataset or POOLED] = first_value, second_value, gap
    return differences


def _rows_of(shared: Sequence[ScoredRow]) -> Rows:
    member = np.array([row.member for row in shared], dtype=bool)
    dataset = [row.dataset for row in shared]
    return Rows(
        seed=np.array([row.seed for row in shared]),
        dataset=np.array(dataset, dtype=object),
        group=number_groups(dataset, [row.group for row in shared]),
        member=member,
        nonmember=~member,
    )
