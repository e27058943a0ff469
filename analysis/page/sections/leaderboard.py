"""The leaderboard: every detector of the headline's arm, ranked, with what it must see of a model.

Settings are chosen on `tune`, numbers are of `test`, and the rank is that of the page's headline
(`analysis.selection.ranking`). Nobody leaves the board in silence: controls, upper bounds and
detectors without an interval or on rows of their own stand under the ranked ones with the reason,
and those that could not run are listed with what to set.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

from analysis.arm import MODEL_FREE, UPPER_BOUNDS
from analysis.compared_rows import UnscoredRows
from analysis.metrics_table import Cell, CohortMetrics
from analysis.page.grids import chosen, difference, in_arm, interval
from analysis.page.parts import Board
from analysis.page.table import NOTHING, Column, Entry, Row, Table, listing, with_noun
from analysis.results import Analysis
from analysis.selection.ranking import common_rows, rank_detectors, reported_cell
from analysis.summary import Headline
from detect.detector_table import DetectorFacts
from detect.scoring import LeftOut

_UNDECLARED = "not declared"


def leaderboard(
    best: Headline,
    tables: Sequence[CohortMetrics],
    analysis: Analysis,
    *,
    declared: Sequence[DetectorFacts],
    to_loss: Mapping[str, Cell | None],
) -> Board:
    """Return the board of the headline's arm.

    Args:
        best: the headline.
        tables: the metrics of all models, which hold the controls that look at none.
        analysis: says why rows were not scored.
        declared: what the detectors declare.
        to_loss: paired AUC differences to `loss`, by detector.
    """
    table = best.table
    names = dict.fromkeys(name for one in [table, *tables] for name in one.values("detector"))
    cells = {name: _cell(name, table, tables) for name in names}
    ranked = [name for name in rank_detectors(cells) if name in table.values("detector")]
    ranked = [name for name in ranked if name not in UPPER_BOUNDS]
    known = {one.name: one for one in declared}
    metric, rate = _lowest_rate(table)
    rows: list[Row] = []
    levels = []
    for name in [*ranked, *(name for name in names if name not in ranked)]:
        facts, cell = known.get(name), cells[name]
        rank = ranked.index(name) + 1 if name in ranked else None
        setting = () if cell is None or cell.setting in ("default", "-") else (cell.setting,)
        remarks = _remarks(name, facts, cells, table, analysis.unscored)
        strong = rank == 1 and cell is not None and cell.low > 0.5
        rows.append(
            (
                Entry(name, notes=(*setting, *remarks)),
                NOTHING if rank is None else str(rank),
                facts.access if facts else _UNDECLARED,
                interval(cell, best=strong),
                *([interval(chosen(table, name, metric=metric), rate=True)] if rate else []),
                difference(to_loss.get(name)),
                (facts and facts.cost) or NOTHING,
            )
        )
        levels.append(facts.access_level if facts else 0)
    behind = next((f"; {_counts_text(cell)}" for name in ranked if (cell := cells[name])), "")
    shown = Table(
        title=f"Leaderboard{in_arm(table)}",
        columns=(
            Column("Detector"),
            Column("Rank", right=True),
            Column("Access"),
            Column("AUC", right=True),
            *([Column(f"TPR at {rate}", right=True)] if rate else []),
            Column("AUC less that of loss", right=True),
            Column("Passes a text"),
        ),
        rows=tuple(rows),
        caption="Settings chosen on the tune split, numbers from the test split, all datasets "
        f"pooled, members with at least one copy{behind}. Ranked by the AUC on the tune split, on "
        "which no number here is measured; without tune rows by the lower end of the interval. "
        "Access: what of the model a detector must see; each level includes those before it. "
        "Difference to loss: paired, on the same examples; bold: the interval leaves out 0.",
        levels=tuple(levels),
    )
    access = {one.access_level: one.access for name in names if (one := known.get(name))}
    return Board(shown, sorted(access.items()))


def left_out_listing(left_out: Sequence[LeftOut]) -> Table | None:
    """Return the detectors that could not run, with what to do; None where all ran."""
    return listing(
        "Detectors that are not in this run",
        ("Detector", "Lacks", "What to do"),
        [(one.detector, " and ".join(one.lacks), one.hint) for one in left_out],
        "The experiment asks for all detectors; the needs of these are not met.",
    )


def _cell(name: str, table: CohortMetrics, tables: Sequence[CohortMetrics]) -> Cell | None:
    """Return what stands for a detector; a control's is the same beside whichever model."""
    cell = reported_cell(table, name)
    if cell is None and name in MODEL_FREE:
        return next(filter(None, (reported_cell(one, name) for one in tables)), None)
    return cell


def _lowest_rate(table: CohortMetrics) -> tuple[str, str]:
    """Return the lowest false-positive rate at which anything was measured, and its name."""
    rates = {
        float(name.removeprefix("tpr@")): name
        for name in table.values("metric")
        if name.startswith("tpr@")
    }
    for rate, metric in sorted(rates.items()):
        cells = [chosen(table, name, metric=metric) for name in table.values("detector")]
        if any(cell is not None and cell.available for cell in cells):
            return metric, f"{rate * 100:g} % FPR"
    return "", ""


def _remarks(
    name: str,
    facts: DetectorFacts | None,
    cells: Mapping[str, Cell | None],
    table: CohortMetrics,
    unscored: Sequence[UnscoredRows],
) -> list[str]:
    """Return what a reader must know of a row, and why it has no rank."""
    cell = cells[name]
    places = [place for place in unscored if place.cohort == table.cohort]
    remarks = []
    if name in MODEL_FREE:
        remarks.append("control: it looks at no model")
    if name in UPPER_BOUNDS:
        remarks.append("upper bound: it knows more than an auditor does")
    if facts is not None and facts.depends_on_rows:
        remarks.append("scores depend on the other rows")
    if facts is not None and facts.depends_on_labels and name not in MODEL_FREE:
        remarks.append("is told labels")
    if cell is None:
        remarks.append("not scored under this model")
    elif not isfinite(cell.value):
        remarks.append(f"no value: {_why_no_value(name, cell, places)}")
    elif not cell.available:
        remarks.append("no interval: too few rows")
    elif name not in MODEL_FREE:
        measured = {key: one for key, one in cells.items() if key not in MODEL_FREE}
        if (cell.n_members, cell.n_nonmembers) != common_rows(measured):
            remarks.append(f"on rows of its own: {_counts_text(cell)}")
    unlike = [
        one
        for place in places
        for one in place.missing
        if one.detector == name and one.unlike and (cell is None or one.setting == cell.setting)
    ]
    if unlike:
        remarks.append(min(unlike, key=lambda one: one.p_value).sentence())
    return remarks


def _why_no_value(name: str, cell: Cell, places: Sequence[UnscoredRows]) -> str:
    if min(cell.n_members, cell.n_nonmembers) >= 2:
        return "all its scores are equal"
    reasons = (one.reason for place in places for one in place.reasons if one.detector == name)
    return next(reasons, "too few rows")


def _counts_text(cell: Cell) -> str:
    """Return the examples and seeds behind a number."""
    seeds = with_noun(cell.n_seeds, "seed")
    return f"{cell.n_members:,} members + {cell.n_nonmembers:,} non-members, {seeds}"
