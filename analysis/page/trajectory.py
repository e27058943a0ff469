"""What the page shows of detection along training: sentences, and tables behind the figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.arm import Cohort, axis_column
from analysis.copy_bins import ALL, copies_order, is_dose
from analysis.figures.trajectory import best_detectors, fading_detectors
from analysis.metrics_table import Cell
from analysis.page.tables.grid import (
    Grid,
    GridRow,
    Head,
    ShownCell,
    split_table,
    tables_by_detector,
)
from analysis.tables import AUC, POOLED
from analysis.trajectory.checkpoints import TrajectoryTables
from analysis.trajectory.fading import FADING_SLOPE, RATE_WARNING, not_constant

Row = Mapping[str, Any]

_MIN_MEMBERS = 30
"""Fewer members than this make no end point of a sentence."""


@dataclass(frozen=True, kw_only=True)
class TrajectoryView:
    """Detection along training, ready to be shown."""

    sentences: tuple[str, ...]
    progress: tuple[Grid, ...]
    """A column a checkpoint, a row a detector; several tables an arm where one is too wide."""
    fading: tuple[Grid, ...]
    """A row a number of copies, a column a bin of steps since the last, for arms and detectors."""


def trajectory_view(found: TrajectoryTables, axes: Sequence[str]) -> TrajectoryView:
    """Return what the page shows.

    Args:
        found: the tables.
        axes: the swept axes.
    """
    pooled = [row for row in found.progress.to_pylist() if row["dataset"] == POOLED]
    fading = found.fading.to_pylist()
    best = best_detectors(pooled)
    if not best:
        return TrajectoryView(sentences=(), progress=(), fading=())
    arms = list(dict.fromkeys(_arm(row, axes) for row in pooled))
    progress = []
    fading_tables = []
    for arm in arms:
        progress += _progress_grids(arm, [row for row in pooled if _arm(row, axes) == arm], best)
        for name in fading_detectors(best, len(arms)):
            fading_tables += _fading_grids(
                arm, [row for row in fading if _arm(row, axes) == arm], name
            )
    return TrajectoryView(
        sentences=tuple(
            sentence
            for arm in arms
            for name in fading_detectors(best, len(arms))
            for sentence in _sentences(arm, [r for r in fading if _arm(r, axes) == arm], name)
        ),
        progress=tuple(progress),
        fading=tuple(fading_tables),
    )


def _arm(row: Row, axes: Sequence[str]) -> str:
    return Cohort(tuple((axis, row[axis_column(axis)]) for axis in axes), "contaminated").label()


def _sentences(arm: str, rows: Sequence[Row], detector: str) -> list[str]:
    slope = _whole(rows, detector, FADING_SLOPE)
    points = [r for r in _tuned(rows, detector) if r["metric"] == AUC and r["copies"] == ALL]
    if slope is None or len(points) < 2 or slope["low"] != slope["low"]:
        return []
    first = points[0]
    # The longest times are those of few examples.
    last = [row for row in points if row["n_members"] >= _MIN_MEMBERS or row is points[1]][-1]
    where = f"{arm}: under" if arm else "Under"
    if slope["high"] < 0:
        verdict = "examples fade after they were seen"
    elif slope["low"] > 0:
        verdict = "scores rise after examples were seen"
    else:
        verdict = "these data do not show that examples fade after they were seen"
    sentence = (
        f"{where} {detector}, {verdict}: within examples, the share of non-members that one scores "
        f"above changes by {slope['value']:+.3f} [{slope['low']:+.3f}, {slope['high']:+.3f}] with "
        f"each doubling of 1 + the steps since its last copy ({slope['n_members']:,} members at "
        f"{slope['pairs'] / slope['n_members']:.1f} checkpoints each)."
    )
    if not_constant(rows):
        return [sentence, RATE_WARNING]
    return [f"{sentence} AUC {_interval(first)} {_when(first)}, {_interval(last)} {_when(last)}."]


def _whole(rows: Sequence[Row], detector: str, metric: str) -> Row | None:
    """Return the one number over all times and copies."""
    found = (r for r in _tuned(rows, detector) if r["metric"] == metric and r["copies"] == ALL)
    return next(found, None)


def _interval(row: Row) -> str:
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def _when(row: Row) -> str:
    if row["since_high"] == 0:
        return "in the step of the last copy"
    steps = "1 step" if row["since"] == "1" else f"{row['since']} steps"
    return f"{steps} after it"


def _tuned(rows: Sequence[Row], detector: str) -> list[Row]:
    return [row for row in rows if row["detector"] == detector and row["selection"] == "tuned"]


def _progress_grids(arm: str, rows: Sequence[Row], best: Sequence[str]) -> list[Grid]:
    names = list(dict.fromkeys(row["detector"] for row in rows))
    order = [*best, *(name for name in names if name not in best)]
    cells = {
        (row["step"], row["detector"], row["copies"]): _cell(row)
        for row in rows
        if row["selection"] == "tuned"
    }
    tokens = {row["step"]: row["tokens"] for row in rows}
    lines = []
    for step in sorted(tokens):
        found = [cells.get((step, name, ALL)) for name in order]
        unseen = cells.get((step, best[0], "0"))
        seen = next((cell.n_members for cell in found if cell), 0)
        note = f"{tokens[step]:,} tokens, {seen:,} members seen"
        if any(found) or unseen:
            cells_shown = [ShownCell(cell, n=_other(cell, seen)) for cell in [*found, unseen]]
            lines.append(GridRow(Head(f"step {step:,}", note), cells_shown))
    return tables_by_detector(
        "Detectors during training" + (f" ({arm})" if arm else ""),
        [*order, f"not seen yet, {best[0]}"],
        lines,
        "AUC with its interval; tuned settings (chosen under the last model), all datasets "
        "pooled. Members of which the model had seen at least one whole copy by then; the last row "
        "is of the members of which it had seen none, with their own number.",
    )


def _other(cell: Cell | None, seen: int) -> str:
    return "" if cell is None or cell.n_members == seen else f"{cell.n_members:,} members"


def _fading_grids(arm: str, rows: Sequence[Row], detector: str) -> list[Grid]:
    found = [row for row in _tuned(rows, detector) if row["metric"] == AUC]
    bins = {row["since"]: row for row in sorted(found, key=lambda row: row["since_low"])}
    labels = sorted({row["copies"] for row in found}, key=copies_order)
    if not found:
        return []
    cells = {(row["copies"], row["since"]): _cell(row) for row in found}
    cells_shown = {
        label: [cells.get((label, since)) for since in bins]
        for label in labels
        if label == ALL or is_dose(label)
    }
    return split_table(
        Grid(
            title=f"By steps since the last copy, {detector}" + (f" ({arm})" if arm else ""),
            corner="Copies seen",
            columns=[Head(f"{since} steps" if since != "1" else "1 step") for since in bins],
            rows=[
                GridRow(
                    Head(label),
                    [ShownCell(cell, n=f"{cell.n_members:,}" if cell else "") for cell in found],
                )
                for label, found in cells_shown.items()
            ],
            caption="AUC with its interval over pairs of a member and a model that has seen it, "
            "each placed among the non-members under the same model; tuned setting, datasets "
            "pooled. Under each number: the members."
            + (f" {RATE_WARNING}" if not_constant(rows) else ""),
        )
    )


def _cell(row: Row) -> Cell:
    names = ("setting", "value", "low", "high", "n_members", "n_nonmembers", "n_seeds")
    return Cell(**{name: row[name] for name in names})
