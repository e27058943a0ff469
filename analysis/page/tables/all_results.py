"""Every AUC of a run as one table that a reader sorts, and filters by arm, dataset and copies.

A row is one detector's setting in one arm, on one dataset and one number of copies, with its AUC
and the true-positive rates beside it. The page holds the rows as plain escaped HTML, so that they
are read, searched and printed without any script. Cost: some 500 bytes a row, hence `MAX_ROWS`;
what is left out then is said, and stands in findings.parquet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from analysis.copy_bins import ALL
from analysis.metrics_table import Cell, CohortMetrics, Key

MAX_ROWS = 5_000
_POOLED = "all"
_EVERY_COPY = "all (1 or more)"
_AUC = "auc"
_TPR = "tpr@"


class Entry(NamedTuple):
    """One place of the table."""

    text: str
    number: float | None = None
    """What it is sorted by; None for words, which are sorted as such."""

    @property
    def sorted_by(self) -> str:
        """The number as the page writes it for its script; empty for words and for NaN."""
        return "" if self.number is None or not isfinite(self.number) else f"{self.number:.6g}"


class Column(NamedTuple):
    """A column of the table."""

    name: str
    numeric: bool


class Choice(NamedTuple):
    """A column by which rows are filtered."""

    column: int
    label: str
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AllResults:
    """The table."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    choices: tuple[Choice, ...]
    """Columns of words with several values, by which rows can be filtered."""
    common: str
    """What all rows share, in words; empty where there is nothing."""
    left_out: str
    """A sentence on the rows that are not in the page; empty where all are."""


class _Result(NamedTuple):
    arm: str
    key: Key
    selection: str
    cell: Cell
    rates: dict[str, Cell]


def all_results(tables: Sequence[CohortMetrics]) -> AllResults | None:
    """Return the table of all AUCs; None where there is none."""
    found = [result for table in tables for result in _results(table)]
    if not found:
        return None
    shown, left_out = _at_most(found, MAX_ROWS)
    rates = sorted({rate for one in shown for rate in one.rates}, key=_rate)
    heads = [
        *(Column(name, False) for name in ("Arm", "Dataset", "Detector", "Setting", "Selection")),
        Column("Copies", False),
        Column("Variant", False),
        Column("AUC", True),
        Column("95 % interval", True),
        *(Column(f"TPR at {_rate(rate) * 100:g} % FPR", True) for rate in rates),
        *(Column(name, True) for name in ("Members", "Non-members", "Seeds")),
        Column("The interval is for", False),
    ]
    rows = [_entries(one, rates) for one in shown]
    values = [list(dict.fromkeys(row[at].text for row in rows)) for at in range(len(heads))]
    # What all rows share is said once; results stay, since a reader looks for them.
    counts = ("Members", "Non-members", "Seeds")
    kept = [
        at
        for at, head in enumerate(heads)
        if len(values[at]) > 1 or (head.numeric and (head.name not in counts or len(rows) < 3))
    ]
    common = [
        f"{heads[at].name} in all rows: {values[at][0]}."
        for at in range(len(heads))
        if at not in kept and values[at][0] not in ("", "–", "any")
    ]
    filtered = ("Arm", "Dataset", "Detector", "Selection", "Copies", "Variant")
    return AllResults(
        columns=tuple(heads[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in rows),
        choices=tuple(
            Choice(position, heads[at].name, tuple(values[at]))
            for position, at in enumerate(kept)
            if heads[at].name in filtered
        ),
        common=" ".join(common),
        left_out=left_out,
    )


def _results(table: CohortMetrics) -> list[_Result]:
    """Return the AUCs of one cohort; a tuned setting that is the default one is one row."""
    label = " · ".join(part for part in (table.cohort.model, table.cohort.label()) if part)
    # With one dataset the pooled rows say the same again.
    single = len(set(table.values("dataset")) - {_POOLED}) == 1
    found: dict[tuple[str, ...], _Result] = {}
    for key, cell in table.cells.items():
        if key.metric != _AUC or not isfinite(cell.value):
            continue
        if single and key.dataset == _POOLED:
            continue
        same = (key.dataset, key.detector, cell.setting, key.copies, key.variant)
        earlier = found.get(same)
        selection = key.selection if key.selection in ("default", "tuned") else "control"
        if earlier is not None:
            found[same] = earlier._replace(selection="default, tuned")
            continue
        rates = {
            metric: rate
            for metric in _rates(table)
            if (rate := table.cells.get(key._replace(metric=metric))) is not None
            and isfinite(rate.value)
        }
        found[same] = _Result(label, key, selection, cell, rates)
    return list(found.values())


def _rates(table: CohortMetrics) -> list[str]:
    return [name for name in table.values("metric") if name.startswith(_TPR)]


def _rate(metric: str) -> float:
    return float(metric.removeprefix(_TPR))


def _entries(one: _Result, rates: Sequence[str]) -> tuple[Entry, ...]:
    cell = one.cell
    return (
        Entry(one.arm),
        Entry("all pooled" if one.key.dataset == _POOLED else one.key.dataset),
        Entry(one.key.detector),
        Entry("–" if cell.setting == "-" else cell.setting),
        Entry(one.selection),
        Entry(_EVERY_COPY if one.key.copies == ALL else one.key.copies),
        Entry("any" if one.key.variant == ALL else one.key.variant),
        Entry(f"{cell.value:.3f}", cell.value),
        _interval(cell),
        *(_value(one.rates.get(rate)) for rate in rates),
        Entry(f"{cell.n_members:,}", cell.n_members),
        Entry(f"{cell.n_nonmembers:,}", cell.n_nonmembers),
        Entry(str(cell.n_seeds), cell.n_seeds),
        Entry(cell.interval),
    )


def _interval(cell: Cell) -> Entry:
    """Return both ends; they are sorted by the lower one, as ranks are."""
    if not cell.available:
        return Entry("–", float("nan"))
    return Entry(f"{cell.low:.3f}–{cell.high:.3f}", cell.low)


def _value(cell: Cell | None) -> Entry:
    return Entry("–", float("nan")) if cell is None else Entry(f"{cell.value:.3f}", cell.value)


def _at_most(found: list[_Result], most: int) -> tuple[list[_Result], str]:
    """Return at most so many rows, the finest divisions left out first, and what was left out."""
    tuned = {(one.arm, one.key.detector) for one in found if one.selection == "tuned"}
    steps: tuple[tuple[str, Callable[[_Result], bool]], ...] = (
        (
            "single datasets at single numbers of copies",
            lambda one: one.key.dataset == _POOLED or one.key.copies == ALL,
        ),
        (
            "default settings where another was chosen",
            lambda one: one.selection != "default" or (one.arm, one.key.detector) not in tuned,
        ),
        ("single numbers of copies", lambda one: one.key.copies == ALL),
        ("single datasets", lambda one: one.key.dataset == _POOLED),
    )
    shown, reasons = found, []
    for reason, keep in steps:
        if len(shown) <= most:
            break
        shown = [one for one in shown if keep(one)]
        reasons.append(reason)
    if len(shown) > most:
        reasons.append(f"whatever comes after the first {most:,}")
        shown = shown[:most]
    if not reasons:
        return shown, ""
    return shown, (
        f"{len(found) - len(shown):,} of {len(found):,} rows are not in this page, since it would "
        f"be too large: {', '.join(reasons)}. findings.parquet has them all."
    )
