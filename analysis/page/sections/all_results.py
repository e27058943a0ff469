"""Every AUC of a run as one table that a reader sorts, and filters by arm, dataset and copies.

A row is one detector's setting in one arm, on one dataset and one number of copies, with its AUC
and the true-positive rates beside it. The page holds the rows as plain escaped HTML, so that they
are read, searched and printed without any script. Cost: some 500 bytes a row, hence `MAX_ROWS`;
what is left out then is said, and stands in findings.parquet.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

from analysis.arm_words import arm_words
from analysis.copy_bins import ALL
from analysis.findings import Findings, Row
from analysis.intervals.estimate import Estimate
from analysis.page.parts import Explorer
from analysis.page.table import Table, numbers, texts
from analysis.summary import NO_NAMES, Names
from analysis.unit import NOTHING, Entry

MAX_ROWS = 5_000
_POOLED = "all"
_EVERY_COPY = "all (1 or more)"
_AUC = "auc"
_TPR = "tpr@"
_DIVIDED = ("dataset", "detector", "copies", "variant")
_COUNTS = ("Members", "Non-members", "Seeds")
_FILTERED = ("Arm", "Dataset", "Detector", "Selection", "Copies", "Variant")


class _Result(NamedTuple):
    arm: str
    row: Row
    selection: str
    auc: Estimate
    rates: dict[float, float]


def all_results(tables: Sequence[Findings], names: Names = NO_NAMES) -> Explorer | None:
    """Return the table of all AUCs; None if there is none.

    Args:
        tables: the metrics of all models.
        names: published names of detectors.
    """
    results = [result for table in tables for result in _results(table)]
    if not results:
        return None
    shown, left_out = _at_most(results, MAX_ROWS)
    rates = sorted({rate for result in shown for rate in result.rates})
    columns = [
        *texts("Arm", "Dataset", "Detector", "Setting", "Selection", "Copies", "Variant"),
        *numbers("AUC", "95 % interval", *(f"TPR at {rate * 100:g} % FPR" for rate in rates)),
        *numbers(*_COUNTS),
        *texts("The interval is for"),
    ]
    rows = [_row(result, rates, names) for result in shown]
    values = [list(dict.fromkeys(row[at].text for row in rows)) for at in range(len(columns))]
    # What all rows share is said once; results stay, since a reader looks for them.
    kept = [
        at
        for at, column in enumerate(columns)
        if len(values[at]) > 1 or (column.right and (column.title not in _COUNTS or len(rows) < 3))
    ]
    common = [
        f"{columns[at].title} in all rows: {values[at][0]}."
        for at in range(len(columns))
        if at not in kept and values[at][0] not in ("", NOTHING, "any")
    ]
    caption = (
        "AUCs on the test split, with the true-positive rates that the number of non-members "
        f"supports. {' '.join(common)} {left_out} Heads sort; intervals are sorted by their lower "
        "end."
    )
    table = Table(
        title="All results",
        columns=tuple(columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in rows),
        caption=" ".join(caption.split()),
        style="stack listing",
    )
    return Explorer(
        f"Every AUC of this run: {len(rows):,} rows",
        table,
        [
            (position, columns[at].title, values[at])
            for position, at in enumerate(kept)
            if columns[at].title in _FILTERED
        ],
    )


def _results(table: Findings) -> list[_Result]:
    """Return the AUCs of one cohort; a tuned setting that is the default one is one row."""
    label = " · ".join(part for part in (table.cohort.model, arm_words(table.cohort.axes)) if part)
    # With one dataset the pooled rows say the same again.
    single = len(set(table.values("dataset")) - {_POOLED}) == 1
    metrics = [name for name in table.values("metric") if name.startswith(_TPR)]
    results: dict[tuple[str, ...], _Result] = {}
    for row in table.where(metric=_AUC).rows:
        if not isfinite(row["value"]) or (single and row["dataset"] == _POOLED):
            continue
        place = tuple(row[name] for name in (*_DIVIDED, "setting"))
        if place in results:
            results[place] = results[place]._replace(selection="default, tuned")
            continue
        own = {name: row[name] for name in (*_DIVIDED, "selection")}
        rates = {
            float(metric.removeprefix(_TPR)): rate.value
            for metric in metrics
            if (rate := table.get(**own, metric=metric)) is not None and isfinite(rate.value)
        }
        selection = row["selection"] if row["selection"] in ("default", "tuned") else "control"
        results[place] = _Result(label, row, selection, Estimate.of(row), rates)
    return list(results.values())


def _row(result: _Result, rates: Sequence[float], names: Names) -> tuple[Entry, ...]:
    auc, row = result.auc, result.row
    ends = _number(auc.low, f"{auc.low:.3f}–{auc.high:.3f}") if auc.available else _NONE
    return (
        Entry(result.arm),
        Entry("all pooled" if row["dataset"] == _POOLED else row["dataset"]),
        Entry(names.get(row["detector"], row["detector"])),
        Entry(NOTHING if row["setting"] == "-" else row["setting"]),
        Entry(result.selection),
        Entry(_EVERY_COPY if row["copies"] == ALL else row["copies"]),
        Entry("any" if row["variant"] == ALL else row["variant"]),
        _number(auc.value),
        ends,
        *(_number(result.rates[rate]) if rate in result.rates else _NONE for rate in rates),
        _number(auc.members, f"{auc.members:,}"),
        _number(auc.nonmembers, f"{auc.nonmembers:,}"),
        _number(auc.seeds, str(auc.seeds)),
        Entry(auc.about),
    )


_NONE = Entry(NOTHING)


def _number(value: float, text: str = "") -> Entry:
    return Entry(text or f"{value:.3f}", sorted_by=f"{value:.6g}")


def _at_most(results: list[_Result], most: int) -> tuple[list[_Result], str]:
    """Return at most so many rows, the finest divisions left out first, and what was left out."""
    tuned = {(one.arm, one.row["detector"]) for one in results if one.selection == "tuned"}
    steps: tuple[tuple[str, Callable[[_Result], bool]], ...] = (
        (
            "single datasets at single numbers of copies",
            lambda one: one.row["dataset"] == _POOLED or one.row["copies"] == ALL,
        ),
        (
            "default settings where another was chosen",
            lambda one: one.selection != "default" or (one.arm, one.row["detector"]) not in tuned,
        ),
        ("single numbers of copies", lambda one: one.row["copies"] == ALL),
        ("single datasets", lambda one: one.row["dataset"] == _POOLED),
    )
    shown, reasons = results, []
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
        f"{len(results) - len(shown):,} of {len(results):,} rows are not in this page, since it "
        f"would be too large: {', '.join(reasons)}. findings.parquet has them all."
    )
