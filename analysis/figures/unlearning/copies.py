"""Do more copies unlearn worse? The AUC beyond the retrained model's by dose, a panel a method."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.figures.captions import interval_text, range_text
from analysis.figures.style import (
    FAINT,
    MUTED,
    PALETTE,
    ReportFigure,
    house_style,
    new_figure,
    save_figure,
)
from analysis.figures.unlearning.measured import (
    NO_METHOD,
    ORIGINAL,
    UNLEARNED,
    MeasuredModels,
    Row,
    has_interval,
)

NAME = "unlearning-copies"
_MEASURE = "auc_difference"
_COLUMNS = 4
_MAX_PANELS = 16
_HEIGHT = 1.75
_TITLE_LETTERS = 23


class _Panel(NamedTuple):
    title: str
    original: list[tuple[int, Row]]
    """Place of the dose on the axis, and the row."""
    method: list[tuple[int, Row]]


def draw_copies(folder: Path, measured: MeasuredModels) -> ReportFigure | None:
    """Draw the AUC difference by copies; None where fewer than two doses were measured."""
    detector = measured.headline_detector
    doses = measured.copies(_MEASURE)
    if detector is None or len(doses) < 2:
        return None
    every = list(_panels(measured, detector, doses))
    shown = every[:_MAX_PANELS]
    if not shown:
        return None
    columns = min(_COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    with house_style():
        figure = new_figure(0.75 + _HEIGHT * rows)
        axes = _grid(figure, len(shown), rows, columns)
        for axis, panel in zip(axes, shown, strict=True):
            axis.axhline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            _line(axis, panel.original, FAINT, "s")
            _line(axis, panel.method, PALETTE[0], "o")
            axis.set_xticks(range(len(doses)), doses)
            axis.set_xlim(-0.4, len(doses) - 0.6)
            axis.grid(True, axis="y")
            axis.set_title(_broken(panel.title), fontsize=9)
        figure.supxlabel("Copies of the forgotten texts", fontsize=10, color=MUTED)
        figure.supylabel(f"AUC of {detector} less the retrained's", fontsize=10, color=MUTED)
        _key(figure)
        points = [row for panel in shown for _, row in panel.method]
        seeds = max(int(row["seeds"]) for row in points)
        rest = len(every) - len(shown)
        return save_figure(
            figure,
            folder,
            name=NAME,
            title="What each method leaves behind, by copies",
            caption=f"AUC of {detector} less that of the retrained model, which never saw the "
            "forget set (0, dashed), for forgotten texts by the number of their copies, with 95 % "
            "intervals. Orange: after the method; grey squares: the original model. "
            f"{range_text(int(row['forget']) for row in points)} forgotten texts a point, "
            f"{range_text(int(row['holdout']) for row in points)} texts that no model saw, "
            + ("one training seed." if seeds == 1 else f"{seeds} training seeds.")
            + (f" {rest} further panels are in the table." if rest else ""),
            alternative="Points joined by lines, a panel a method. "
            + " ".join(_alternatives(shown, doses)),
            data=[
                {
                    "panel": panel.title,
                    "model": model,
                    "detector": detector,
                    "copies": doses[at],
                    **{name: row[name] for name in ("value", "low", "high", "forget", "holdout")},
                }
                for panel in every
                for model, found in ((ORIGINAL, panel.original), (UNLEARNED, panel.method))
                for at, row in found
            ],
        )


def _grid(figure: Any, count: int, rows: int, columns: int) -> list[Any]:
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    axes = list(grid.ravel())
    for surplus in axes[count:]:
        surplus.set_visible(False)
    for axis in axes[max(0, count - columns) : count]:
        axis.tick_params(labelbottom=True)
    return axes[:count]


def _key(figure: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linewidth=1.4, marker=mark, markersize=4.5, label=label)
        for colour, mark, label in ((FAINT, "s", "original"), (PALETTE[0], "o", "unlearned"))
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False,
                  labelcolor=MUTED)  # fmt: skip


def _broken(title: str) -> str:
    """Return a title on lines that a narrow panel holds, broken behind `_`, `-` or a blank."""
    lines = [""]
    for part in re.findall(r"[^ _-]*[ _-]?", title):
        if len(lines[-1]) + len(part) > _TITLE_LETTERS and lines[-1]:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def _panels(measured: MeasuredModels, detector: str, doses: Sequence[str]) -> Iterator[_Panel]:
    for label, arm in measured.arms().items():
        original = _points(arm, ORIGINAL, NO_METHOD, detector, doses)
        for method in arm.methods:
            found = _points(arm, UNLEARNED, method, detector, doses)
            if found:
                yield _Panel(f"{method}, {label}" if label else method, original, found)


def _points(
    arm: MeasuredModels, model: str, method: str, detector: str, doses: Sequence[str]
) -> list[tuple[int, Row]]:
    found = [
        (at, arm.get(model, method, _MEASURE, detector=detector, copies=dose))
        for at, dose in enumerate(doses)
    ]
    return [(at, row) for at, row in found if row is not None and has_interval(row)]


def _line(axis: Any, points: Sequence[tuple[int, Row]], colour: str, mark: str) -> None:
    for at, row in points:
        axis.plot([at, at], [row["low"], row["high"]], color=colour, linewidth=1.4, zorder=2)
    axis.plot([at for at, _ in points], [row["value"] for _, row in points], color=colour,
              linewidth=1, marker=mark, markersize=4.5, zorder=3)  # fmt: skip


def _alternatives(panels: Sequence[_Panel], doses: Sequence[str]) -> Iterator[str]:
    for panel in panels:
        listed = "; ".join(
            f"{doses[at]} {'copy' if doses[at] == '1' else 'copies'} "
            f"{interval_text(row['value'], row['low'], row['high'])}"
            for at, row in panel.method
        )
        yield f"{panel.title}: {listed}."
