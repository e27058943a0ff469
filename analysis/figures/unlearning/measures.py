"""Several measures side by side: a row a method, with the original and the retrained as lines.

An unlearned model should stand at the retrained model's line in every panel at once. One that
stands there in one panel alone has met a measure, and has not forgotten.
"""

from collections.abc import Sequence
from math import isfinite, isnan
from pathlib import Path
from typing import Any, NamedTuple

from analysis.figures.captions import interval_text, range_text
from analysis.figures.style import (
    INK,
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
    RETRAINED,
    STEPS,
    UNLEARNED,
    MeasuredModels,
    Row,
    has_value,
)

NAME = "unlearning-measures"
_RELEARNED = "relearned_log_probability"
_MEASURES = (
    ("auc", "AUC of {detector}"),
    ("exact_memorisation", "Exact memorisation"),
    ("extraction_strength", "Extraction strength"),
    ("forget_log_probability", "Log-probability, forgotten"),
    ("retain_log_probability", "Log-probability, retained"),
    ("general_log_probability", "Log-probability, general"),
    (_RELEARNED, "Log-probability, relearnt"),
    ("relearn_steps", "Steps to relearn"),
)
_NOT_FORGOTTEN = ("retain", "general")
_COLUMNS = 3
_MAX_ROWS = 24
_ROOM = 1.0
"""How far beyond original and retrained an axis reaches, in their distance; ruined models lie far
beyond, and would press all others into one place."""


class _Point(NamedTuple):
    name: str
    row: Row


class _Panel(NamedTuple):
    title: str
    measure: str
    lines: dict[str, float]
    """Where original and retrained stand."""
    points: list[_Point]


def draw_measures(folder: Path, measured: MeasuredModels) -> ReportFigure | None:
    """Draw the measures of all methods; None where fewer than two were measured."""
    panels = _panels(measured)
    names = list(dict.fromkeys(point.name for panel in panels for point in panel.points))
    if len(panels) < 2:
        return None
    shown = names[:_MAX_ROWS]
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with house_style():
        figure = new_figure(0.5 + rows * (0.75 + 0.21 * len(shown)))
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
        axes = list(grid.ravel())
        for surplus in axes[len(panels) :]:
            surplus.set_visible(False)
        for axis, panel in zip(axes, panels, strict=False):
            _draw(axis, panel, shown)
        _key(figure)
        # Retained and general texts are others, and their numbers stand in the table.
        behind = [
            point.row
            for panel in panels
            for point in panel.points
            if not panel.measure.startswith(_NOT_FORGOTTEN)
        ]
        behind = behind or [point.row for point in panels[0].points]
        seeds = max(int(row["seeds"]) for row in behind)
        rest = len(names) - len(shown)
        return save_figure(
            figure,
            folder,
            name=NAME,
            title="Each method by several measures",
            caption="With 95 % intervals, but for the steps to relearn. Green line: the retrained "
            "model, which never saw the forget set; black line: the original. A triangle at an "
            "edge: the model lies beyond it, further off than the two are from each other. "
            f"{_relearning_text(measured)}"
            f"{range_text(int(row['forget']) for row in behind)} forgotten texts a panel, "
            + ("one training seed." if seeds == 1 else f"{seeds} training seeds.")
            + (f" {rest} further models are in the table." if rest else ""),
            alternative="Dot plots, a panel a measure, a row a method. "
            + " ".join(_alternative(panel) for panel in panels),
            data=[
                {
                    "panel": panel.title,
                    "method": name,
                    **{key: row[key] for key in ("value", "low", "high", "forget", "holdout")},
                }
                for panel in panels
                for name, row in panel.points
            ],
        )


def _panels(measured: MeasuredModels) -> list[_Panel]:
    detector = measured.headline_detector
    arms = measured.arms()
    panels = []
    last = measured.relearning_steps[-1:]
    for measure, title in _MEASURES:
        by = detector if measure == "auc" else None
        of = "".join(f"{STEPS}{step}" for step in last) if measure == _RELEARNED else ""
        points = []
        for label, arm in arms.items():
            for method in arm.methods:
                row = arm.get(UNLEARNED, method, measure, detector=by, of=of)
                if row is not None and has_value(row):
                    points.append(_Point(f"{method}, {label}" if label else method, row))
        if not points:
            continue
        lines = {}
        if len(arms) == 1:
            for model in (ORIGINAL, RETRAINED):
                row = measured.get(model, NO_METHOD, measure, detector=by, of=of)
                if row is not None and has_value(row):
                    lines[model] = float(row["value"])
        panels.append(_Panel(title.format(detector=detector), measure, lines, points))
    return panels


def _relearning_text(measured: MeasuredModels) -> str:
    if not measured.relearning_steps:
        return ""
    return (
        f"Relearnt: after {measured.relearning_steps[-1]} steps on one part of the forget set, "
        "the other part. "
    )


def _draw(axis: Any, panel: _Panel, names: Sequence[str]) -> None:
    low, high = _limits(panel)
    for model, colour in ((ORIGINAL, INK), (RETRAINED, PALETTE[2])):
        if model in panel.lines:
            axis.axvline(panel.lines[model], color=colour, linewidth=1.4, zorder=1)
    rows = dict(panel.points)
    for at, name in enumerate(names):
        row = rows.get(name)
        if row is None:
            continue
        value, height = float(row["value"]), -at
        if not low <= value <= high:
            axis.plot([low if value < low else high], [height], color=PALETTE[0], zorder=3,
                      marker="<" if value < low else ">", markersize=6, clip_on=False)  # fmt: skip
            continue
        # An open end, as of steps that were not reached, is drawn to the edge.
        if not (isnan(row["low"]) or isnan(row["high"])):
            ends = [max(low, row["low"]), min(high, row["high"])]
            axis.plot(ends, [height, height], color=PALETTE[0], linewidth=1.5, zorder=2)
        axis.plot([value], [height], color=PALETTE[0], marker="o", markersize=4.5, zorder=3)
    axis.set_xlim(low, high)
    axis.set_ylim(0.6 - len(names), 0.6)
    axis.set_yticks([-at for at in range(len(names))], names, fontsize=8.5)
    axis.locator_params(axis="x", nbins=4)
    axis.tick_params(axis="y", length=0)
    axis.grid(True, axis="both")
    axis.set_title(panel.title, fontsize=10)


def _limits(panel: _Panel) -> tuple[float, float]:
    """Return the ends of an axis: all points, but none far beyond original and retrained."""
    found = [float(row[key]) for _, row in panel.points for key in ("value", "low", "high")]
    found = [one for one in found if isfinite(one)] + list(panel.lines.values())
    low, high = min(found), max(found)
    if len(panel.lines) == 2:
        ends = sorted(panel.lines.values())
        room = _ROOM * max(ends[1] - ends[0], 0.5 if "log_prob" in panel.measure else 0.05)
        low, high = max(low, ends[0] - room), min(high, ends[1] + room)
    room = 0.04 * (high - low) or 0.05
    return low - room, high + room


def _key(figure: Any) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=INK, linewidth=1.4, label="original"),
        Line2D([], [], color=PALETTE[2], linewidth=1.4, label="retrained"),
        Line2D([], [], color=PALETTE[0], linewidth=1.5, marker="o", markersize=4.5,
               label="unlearned"),
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper right", ncols=3, frameon=False,
                  labelcolor=MUTED)  # fmt: skip


def _alternative(panel: _Panel) -> str:
    lines = [f"{model} {value:.2f}" for model, value in panel.lines.items()]
    points = [
        f"{name} {interval_text(row['value'], row['low'], row['high'])}"
        for name, row in panel.points
    ]
    return f"{panel.title}: {'; '.join([*lines, *points])}."
