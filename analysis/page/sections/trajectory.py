"""What the page shows of detection along training: sentences, and tables behind the figures."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from analysis.arm import Cohort, axis_column
from analysis.copy_bins import ALL, copies_order, is_dose
from analysis.figures.trajectory import best_detectors, fading_detectors
from analysis.metrics_table import Cell, plain_cell
from analysis.page.grids import interval, split_table, tables_by_detector
from analysis.page.parts import Part, Picture, fold, present
from analysis.page.table import Column, Entry, Table, numbers
from analysis.tables import AUC, POOLED
from analysis.trajectory.checkpoints import TrajectoryTables
from analysis.trajectory.fading import FADING_SLOPE, RATE_WARNING, not_constant

Row = Mapping[str, Any]

_MIN_MEMBERS = 30
"""Fewer members than this make no end point of a sentence."""


class TrajectoryParts(NamedTuple):
    """Detection along training, ready to be shown."""

    sentences: tuple[str, ...]
    progress: tuple[Table, ...]
    """A column a checkpoint, a row a detector; several tables an arm where one is too wide."""
    fading: tuple[Table, ...]
    """A row a number of copies, a column a bin of steps since the last, for arms and detectors."""


def trajectory_parts(tables: TrajectoryTables, axes: Sequence[str]) -> TrajectoryParts:
    """Return what the page shows.

    Args:
        tables: of detection along training.
        axes: the swept axes.
    """
    pooled = [row for row in tables.progress.to_pylist() if row["dataset"] == POOLED]
    every = tables.fading.to_pylist()
    best = best_detectors(pooled)
    sentences: list[str] = []
    progress: list[Table] = []
    fading: list[Table] = []
    arms = list(dict.fromkeys(_arm(row, axes) for row in pooled)) if best else []
    for arm in arms:
        progress += _progress(arm, [row for row in pooled if _arm(row, axes) == arm], best)
        rows = [row for row in every if _arm(row, axes) == arm]
        for name in fading_detectors(best, len(arms)):
            sentences += _sentences(arm, rows, name)
            fading += _fading(arm, rows, name)
    return TrajectoryParts(tuple(sentences), tuple(progress), tuple(fading))


def along_training(shown: TrajectoryParts, pictures: Mapping[str, Picture]) -> list[Part]:
    """Return the parts of the section, in their order."""
    return present(
        list(shown.sentences),
        *(pictures.get(name) for name in ("trajectory", "trajectory-copies", "fading")),
        list(shown.fading),
        [fold(table) for table in shown.progress],
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


def _progress(arm: str, rows: Sequence[Row], best: Sequence[str]) -> list[Table]:
    names = list(dict.fromkeys(row["detector"] for row in rows))
    order = [*best, *(name for name in names if name not in best)]
    cells = {
        (row["step"], row["detector"], row["copies"]): plain_cell(row)
        for row in rows
        if row["selection"] == "tuned"
    }
    tokens = {row["step"]: row["tokens"] for row in rows}
    lines = []
    for step in sorted(tokens):
        measured = [cells.get((step, name, ALL)) for name in order]
        unseen = cells.get((step, best[0], "0"))
        seen = next((cell.n_members for cell in measured if cell), 0)
        note = f"{tokens[step]:,} tokens, {seen:,} members seen"
        if any(measured) or unseen:
            head = Column(f"step {step:,}", right=True, note=note)
            lines.append((head, [_of_members(cell, seen) for cell in [*measured, unseen]]))
    return tables_by_detector(
        "Detectors during training" + (f" ({arm})" if arm else ""),
        [*order, f"not seen yet, {best[0]}"],
        lines,
        "AUC with its interval; tuned settings (chosen under the last model), all datasets "
        "pooled. Members of which the model had seen at least one whole copy by then; the last row "
        "is of the members of which it had seen none, with their own number.",
    )


def _of_members(cell: Cell | None, usual: int) -> Entry:
    """Return a number with the members behind it, where they are not the usual ones."""
    if cell is None or cell.n_members == usual:
        return interval(cell)
    return interval(cell, n=f"{cell.n_members:,} members")


def _fading(arm: str, rows: Sequence[Row], detector: str) -> list[Table]:
    aucs = [row for row in _tuned(rows, detector) if row["metric"] == AUC]
    if not aucs:
        return []
    bins = list(dict.fromkeys(row["since"] for row in sorted(aucs, key=lambda r: r["since_low"])))
    labels = sorted({row["copies"] for row in aucs}, key=copies_order)
    cells = {(row["copies"], row["since"]): plain_cell(row) for row in aucs}
    heads = ["1 step" if since == "1" else f"{since} steps" for since in bins]
    return split_table(
        Table(
            title=f"By steps since the last copy, {detector}" + (f" ({arm})" if arm else ""),
            columns=(Column("Copies seen"), *numbers(*heads)),
            rows=tuple(
                (label, *(_of_members(cells.get((label, since)), 0) for since in bins))
                for label in labels
                if label == ALL or is_dose(label)
            ),
            caption="AUC with its interval over pairs of a member and a model that has seen it, "
            "each placed among the non-members under the same model; tuned setting, datasets "
            f"pooled.{f' {RATE_WARNING}' if not_constant(rows) else ''}",
        )
    )
