"""The leaderboard: every detector of the headline's arm, ranked, with what it must see of a model.

Settings are chosen on `tune`, numbers are of `test`, and the rank is that of the page's headline
(`analysis.selection.ranking`). Nobody leaves the board in silence: controls, upper bounds and
detectors without an interval or on rows of their own stand under the ranked ones with the reason,
and those that could not run are listed with what to set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from analysis.arm import MODEL_FREE, UPPER_BOUNDS
from analysis.compared_rows import UnscoredRows
from analysis.metrics_table import Cell, CohortMetrics
from analysis.page.tables.listing import Listing, listing
from analysis.results import Analysis
from analysis.selection.ranking import common_rows, rank_detectors, reported_cell
from analysis.summary import Headline
from detect.detector_table import DetectorFacts
from detect.scoring import LeftOut


class AccessChoice(NamedTuple):
    """One choice of the board's filter."""

    level: int
    label: str


@dataclass(frozen=True, kw_only=True)
class BoardRow:
    """One detector of the board."""

    rank: int | None
    """From 1; None for one that is not ranked."""
    detector: str
    setting: str
    """The one that is reported; empty for a detector without parameters."""
    access: str
    level: int
    """The access as a number; 0 for a detector of which nothing is known."""
    cost: str
    auc: Cell | None
    rate: Cell | None
    """True-positive rate at the board's false-positive rate."""
    to_loss: Cell | None
    """Paired difference to `loss`."""
    remarks: tuple[str, ...]

    @property
    def best(self) -> bool:
        """Whether it is the best, as the page's other tables have it: its interval is above 0.5."""
        return self.rank == 1 and self.auc is not None and self.auc.low > 0.5


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """The board of one arm."""

    where: str
    """The arm in words; empty where there is one."""
    rate: str
    """The false-positive rate of the column, such as `1 % FPR`; empty where none is supported."""
    behind: str
    """How many rows and seeds stand behind the ranked detectors."""
    rows: list[BoardRow]
    choices: list[AccessChoice]
    """The access levels that occur, lowest first."""


def leaderboard(
    best: Headline,
    tables: Sequence[CohortMetrics],
    analysis: Analysis,
    *,
    facts: Sequence[DetectorFacts],
    to_loss: Mapping[str, Cell | None],
) -> Leaderboard:
    """Return the board of the headline's arm.

    Args:
        best: the headline.
        tables: the metrics of all models, which hold the controls that look at none.
        analysis: says why rows were not scored.
        facts: what the detectors declare.
        to_loss: paired AUC differences to `loss`, by detector.
    """
    table = best.table
    names = dict.fromkeys(name for one in [table, *tables] for name in one.values("detector"))
    cells = {name: _cell(name, table, tables) for name in names}
    ranked = [name for name in rank_detectors(cells) if name in table.values("detector")]
    ranked = [name for name in ranked if name not in UPPER_BOUNDS]
    known = {one.name: one for one in facts}
    rate, head = _lowest_rate(table)
    rows = []
    for name in [*ranked, *(name for name in names if name not in ranked)]:
        declared = known.get(name)
        cell = cells[name]
        number = ranked.index(name) + 1 if name in ranked else None
        rows.append(
            BoardRow(
                rank=number,
                detector=name,
                setting=_setting(cell),
                access=declared.access if declared else "not declared",
                level=declared.access_level if declared else 0,
                cost=declared.cost if declared else "",
                auc=cell,
                rate=_rate(table, name, rate),
                to_loss=to_loss.get(name),
                remarks=_remarks(name, declared, cell, cells, table, analysis.unscored),
            )
        )
    levels = {row.level: row.access for row in rows if row.access != "not declared"}
    behind = next((cells[name] for name in ranked), None)
    return Leaderboard(
        where=table.cohort.label(),
        rate=head,
        behind="" if behind is None else _counts(behind),
        rows=rows,
        choices=[AccessChoice(level, levels[level]) for level in sorted(levels)],
    )


def left_out_listing(left_out: Sequence[LeftOut]) -> Listing | None:
    """Return the detectors that could not run, with what to do; None where all ran."""
    return listing(
        "Detectors that are not in this run",
        ("Detector", "Lacks", "What to do"),
        [(one.detector, " and ".join(one.lacks), one.hint) for one in left_out],
        "The experiment asks for all detectors; the needs of these are not met.",
    )


def _cell(name: str, table: CohortMetrics, tables: Sequence[CohortMetrics]) -> Cell | None:
    """Return what stands for a detector; a control's is the same beside whichever model."""
    found = reported_cell(table, name)
    if found is None and name in MODEL_FREE:
        others = (reported_cell(one, name) for one in tables)
        found = next((cell for cell in others if cell is not None), None)
    return found


def _setting(cell: Cell | None) -> str:
    return "" if cell is None or cell.setting in ("default", "-") else cell.setting


def _lowest_rate(table: CohortMetrics) -> tuple[str, str]:
    """Return the lowest false-positive rate at which anything was measured, and its head."""
    rates = [name for name in table.values("metric") if name.startswith("tpr@")]
    for metric in sorted(rates, key=lambda name: float(name.removeprefix("tpr@"))):
        cells = [_rate(table, name, metric) for name in table.values("detector")]
        if any(cell is not None and cell.available for cell in cells):
            return metric, f"{float(metric.removeprefix('tpr@')) * 100:g} % FPR"
    return "", ""


def _rate(table: CohortMetrics, detector: str, metric: str) -> Cell | None:
    if not metric:
        return None
    tuned = table.get(detector, selection="tuned", metric=metric)
    return tuned or table.get(detector, metric=metric)


def _remarks(
    name: str,
    declared: DetectorFacts | None,
    cell: Cell | None,
    cells: Mapping[str, Cell | None],
    table: CohortMetrics,
    unscored: Sequence[UnscoredRows],
) -> tuple[str, ...]:
    """Return what a reader must know of a row, and why it has no rank."""
    found = []
    if name in MODEL_FREE:
        found.append("control: it looks at no model")
    if name in UPPER_BOUNDS:
        found.append("upper bound: it knows more than an auditor does")
    if declared is not None and declared.depends_on_rows:
        found.append("scores depend on the other rows")
    if declared is not None and declared.depends_on_labels and name not in MODEL_FREE:
        found.append("is told labels")
    if cell is None:
        found.append("not scored under this model")
    elif not isfinite(cell.value) and min(cell.n_members, cell.n_nonmembers) >= 2:
        found.append("no value: all its scores are equal")
    elif not isfinite(cell.value):
        reasons = [
            reason.reason
            for place in unscored
            if place.cohort == table.cohort
            for reason in place.reasons
            if reason.detector == name
        ]
        found.append(f"no value: {reasons[0] if reasons else 'too few rows'}")
    elif not cell.available:
        found.append("no interval: too few rows")
    elif name not in MODEL_FREE:
        measured = {key: one for key, one in cells.items() if key not in MODEL_FREE}
        if (cell.n_members, cell.n_nonmembers) != common_rows(measured):
            found.append(f"on rows of its own: {_counts(cell)}")
    unlike = [
        one
        for place in unscored
        if place.cohort == table.cohort
        for one in place.missing
        if one.detector == name and one.unlike and (cell is None or one.setting == cell.setting)
    ]
    if unlike:
        found.append(min(unlike, key=lambda one: one.p_value).sentence())
    return tuple(found)


def _counts(cell: Cell) -> str:
    seeds = "1 seed" if cell.n_seeds == 1 else f"{cell.n_seeds} seeds"
    return f"{cell.n_members:,} members + {cell.n_nonmembers:,} non-members, {seeds}"
