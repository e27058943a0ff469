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
from analysis.metrics_table import Cell, CohortMetrics, Key
from analysis.page.parts import Explorer
from analysis.page.table import NOTHING, Entry, Table, numbers, texts
from analysis.summary import NO_NAMES, Names

MAX_ROWS = 5_000
_POOLED = "all"
_EVERY_COPY = "all (1 or more)"
_AUC = "auc"
_TPR = "tpr@"
_COUNTS = ("Members", "Non-members", "Seeds")
_FILTERED = ("Arm", "Dataset", "Detector", "Selection", "Copies", "Variant")


class _Result(NamedTuple):
    arm: str
    key: Key
    selection: str
    cell: Cell
    rates: dict[float, Cell]


def all_results(tables: Sequence[CohortMetrics], names: Names = NO_NAMES) -> Explorer | None:
    """Return the table of all AUCs; None where there is none.

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


def _results(table: CohortMetrics) -> list[_Result]:
    """Return the AUCs of one cohort; a tuned setting that is the default one is one row."""
    label = " · ".join(part for part in (table.cohort.model, arm_words(table.cohort.axes)) if part)
    # With one dataset the pooled rows say the same again.
    single = len(set(table.values("dataset")) - {_POOLED}) == 1
    metrics = [name for name in table.values("metric") if name.startswith(_TPR)]
    results: dict[tuple[str, ...], _Result] = {}
    for key, cell in table.cells.items():
        if key.metric != _AUC or not isfinite(cell.value):
            continue
        if single and key.dataset == _POOLED:
            continue
        place = (key.dataset, key.detector, cell.setting, key.copies, key.variant)
        if place in results:
            results[place] = results[place]._replace(selection="default, tuned")
            continue
        selection = key.selection if key.selection in ("default", "tuned") else "control"
        rates = {
            float(metric.removeprefix(_TPR)): rate
            for metric in metrics
            if (rate := table.cells.get(key._replace(metric=metric))) is not None
            and isfinite(rate.value)
        }
        results[place] = _Result(label, key, selection, cell, rates)
    return list(results.values())


def _row(result: _Result, rates: Sequence[float], names: Names) -> tuple[Entry, ...]:
    cell, key = result.cell, result.key
    ends = _number(cell.low, f"{cell.low:.3f}–{cell.high:.3f}") if cell.available else _NONE
    return (
        Entry(result.arm),
        Entry("all pooled" if key.dataset == _POOLED else key.dataset),
        Entry(names.get(key.detector, key.detector)),
        Entry(NOTHING if cell.setting == "-" else cell.setting),
        Entry(result.selection),
        Entry(_EVERY_COPY if key.copies == ALL else key.copies),
        Entry("any" if key.variant == ALL else key.variant),
        _number(cell.value),
        ends,
        *(_number(result.rates[rate].value) if rate in result.rates else _NONE for rate in rates),
        _number(cell.n_members, f"{cell.n_members:,}"),
        _number(cell.n_nonmembers, f"{cell.n_nonmembers:,}"),
        _number(cell.n_seeds, str(cell.n_seeds)),
        Entry(cell.interval),
    )


_NONE = Entry(NOTHING)


def _number(value: float, text: str = "") -> Entry:
    return Entry(text or f"{value:.3f}", sorted_by=f"{value:.6g}")


def _at_most(results: list[_Result], most: int) -> tuple[list[_Result], str]:
    """Return at most so many rows, the finest divisions left out first, and what was left out."""
    tuned = {(one.arm, one.key.detector) for one in results if one.selection == "tuned"}
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
