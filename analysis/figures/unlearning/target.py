"""Forgetting against utility: where each unlearned model stands between original and retrained.

The retrained model is the target: it never saw the forget set, so no detector should tell more from
the unlearned model than from it (x = 0), and its loss on other texts is what training without the
forget set costs (y). Names stand above, with a thin line to their points: a dozen methods crowd
around the target, where names beside points would cover each other.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.figures.captions import interval_text, range_text
from analysis.figures.style import (
    FAINT,
    INK,
    MUTED,
    PALETTE,
    PAPER,
    ReportFigure,
    house_style,
    new_figure,
    save_figure,
    spread_labels,
)
from analysis.figures.unlearning.measured import (
    BASE,
    NO_METHOD,
    ORIGINAL,
    RETRAINED,
    UNLEARNED,
    VERSUS_ORIGINAL,
    VERSUS_RETRAINED,
    MeasuredModels,
    Row,
    has_interval,
    has_value,
)

NAME = "unlearning"
_UTILITY = (
    ("retain_log_probability_difference", "retained texts"),
    ("general_log_probability_difference", "general text"),
)
_ZERO = {"value": 0.0, "low": 0.0, "high": 0.0}
_MAX_ARMS = 3
_NAME_WIDTH = 0.24
"""Inches between two slanted names above a panel."""
_SLANT = 40
_LETTER_HEIGHT = 0.048
"""Inches that a letter of a slanted name rises."""
_PANEL_HEIGHT = 3.0
_PANEL_WIDTH = 7.9
_LINEAR = 0.05
"""Nats up to which the scale of losses is linear."""
_TICKS = (0.05, 0.1, 0.3, 1, 3, 10, 30, 100)
_MAX_TICKS = 8
_WIDE = 0.8
"""An AUC difference beyond this is no less of a failure: the axis ends there."""


class _Point(NamedTuple):
    name: str
    model: str
    x: Row
    y: Row


class _Panel(NamedTuple):
    title: str
    texts: str
    points: list[_Point]


def draw_target(folder: Path, measured: MeasuredModels) -> ReportFigure | None:
    """Draw forgetting against utility; None where either was not measured.

    One arm has a panel for retained texts and one for general text; of several, the first three
    have a panel each, for retained texts.
    """
    panels = list(_panels(measured))
    if not panels:
        return None
    detector = measured.headline_detector
    names = max(len(point.name) for panel in panels for point in panel.points)
    height = _PANEL_HEIGHT + 0.15 + _LETTER_HEIGHT * names
    with house_style():
        figure = new_figure(0.3 + height * len(panels))
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, panel in zip(axes, panels, strict=True):
            _draw(axis, panel)
            axis.set_title(panel.title, pad=18 + 72 * _LETTER_HEIGHT * names)
        axes[-1].set_xlabel(
            f"AUC of {detector}, less that of the retrained model "
            "(0: as if never seen; above: still remembered)"
        )
        # Names are placed once the scale of every panel is known.
        figure.draw_without_rendering()
        for axis, panel in zip(axes, panels, strict=True):
            _names(axis, panel.points, _PANEL_WIDTH)
        behind = [point.x for panel in panels for point in panel.points if point.model == UNLEARNED]
        return save_figure(
            figure,
            folder,
            name=NAME,
            title="Forgetting against utility",
            caption=_caption(str(detector), panels, behind),
            alternative="Scatter plot, a point a model. " + " ".join(_alternatives(panels)),
            data=[
                {
                    "panel": panel.title,
                    "model": point.model,
                    "method": point.name,
                    "detector": detector,
                    "auc_difference": point.x["value"],
                    "auc_difference_low": point.x["low"],
                    "auc_difference_high": point.x["high"],
                    "texts": panel.texts,
                    "log_probability_difference": point.y["value"],
                    "log_probability_difference_low": point.y["low"],
                    "log_probability_difference_high": point.y["high"],
                }
                for panel in panels
                for point in panel.points
            ],
        )


def _panels(measured: MeasuredModels) -> Iterator[_Panel]:
    arms = measured.arms()
    several = len(arms) > 1
    for label, arm in list(arms.items())[:_MAX_ARMS]:
        for measure, texts in _UTILITY[: 1 if several else None]:
            points = list(_points(arm, measured.headline_detector, measure))
            if any(point.model == UNLEARNED for point in points):
                title = f"Loss on {texts}"
                yield _Panel(f"{title} ({label})" if label else title, texts, points)


def _points(arm: MeasuredModels, detector: str | None, utility: str) -> Iterator[_Point]:
    """Yield the models that have both numbers.

    What a model is compared with has no row of its own: the original is where utility is counted
    from, and the original's difference to the retrained model is the retrained one's, turned round.
    """
    if detector is None:
        return
    for model, method in arm.models:
        x = arm.get(model, method, "auc_difference", detector=detector)
        y = arm.get(model, method, utility, of=VERSUS_ORIGINAL)
        if model == ORIGINAL:
            y = x and {**x, **_ZERO}
        elif model == RETRAINED:
            y = _turned(arm.get(ORIGINAL, NO_METHOD, utility, of=VERSUS_RETRAINED))
            x = y and {**y, **_ZERO}
        if model != BASE and x is not None and y is not None and has_value(x) and has_value(y):
            yield _Point(model if method == NO_METHOD else method, model, x, y)


def _turned(row: Row | None) -> Row | None:
    ends = row and {"value": -row["value"], "low": -row["high"], "high": -row["low"]}
    return row and {**row, **(ends or {})}


def _draw(axis: Any, panel: _Panel) -> None:
    for point in panel.points:
        colour, mark, size = _look(point.model)
        x, lost = point.x["value"], -point.y["value"]
        thin = {"color": colour, "linewidth": 1.2, "alpha": 0.75, "zorder": 2}
        if has_interval(point.x):
            axis.plot([point.x["low"], point.x["high"]], [lost, lost], **thin)
        if has_interval(point.y):
            axis.plot([x, x], [-point.y["low"], -point.y["high"]], **thin)
        axis.plot([x], [lost], marker=mark, markersize=size, color=colour, linestyle="none",
                  markeredgecolor=PAPER, markeredgewidth=0.6,
                  zorder=4 if point.model != UNLEARNED else 3)  # fmt: skip
        if point.model == RETRAINED:
            axis.axhline(lost, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axis.axvline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    _scale(axis, [-point.y["value"] for point in panel.points])
    low, high = axis.get_xlim()
    axis.set_xlim(max(low, -_WIDE), min(high, _WIDE))
    axis.set_ylabel(f"Loss on {panel.texts} above\nthe original's, nats a token")
    axis.grid(True, axis="both")


def _scale(axis: Any, lost: Sequence[float]) -> None:
    """Scale what was lost by logarithms beyond a twentieth of a nat, the least at the top.

    A good method loses a tenth of a nat, a ruined model thirty.
    """
    axis.set_yscale("symlog", linthresh=_LINEAR, linscale=0.6)
    low, high = min(*lost, -_LINEAR), max(*lost, 4 * _LINEAR)
    axis.set_ylim(high * 1.4, low * 1.4)
    ticks = [sign * one for sign in (-1, 1) for one in _TICKS if low <= sign * one <= high * 1.3]
    if len(ticks) > _MAX_TICKS:
        ticks = [one for one in ticks if f"{abs(one):.0e}".startswith("1")]
    axis.set_yticks([0, *ticks], ["0", *(f"{one:+g}".replace("-", "−") for one in ticks)])
    axis.minorticks_off()


def _names(axis: Any, points: Sequence[_Point], width: float) -> None:
    """Write the names above the axis in the order of their points, joined to them by lines."""
    from matplotlib.patches import ConnectionPatch

    to_axis = axis.transData + axis.transAxes.inverted()
    places = [(p.x["value"], -p.y["value"]) for p in points]
    gap = _NAME_WIDTH / width
    placed = spread_labels([to_axis.transform(one)[0] for one in places], gap, top=1.0)
    for point, place, at in zip(points, places, placed, strict=True):
        framing = point.model != UNLEARNED
        axis.text(at, 1.05, point.name, color=_look(point.model)[0] if framing else INK,
                  fontsize=8.5, fontweight="bold" if framing else "normal", rotation=_SLANT,
                  rotation_mode="anchor", va="center", transform=axis.transAxes,
                  clip_on=False)  # fmt: skip
        line = ConnectionPatch(
            xyA=(at, 1.03), coordsA=axis.transAxes, xyB=place, coordsB=axis.transData,
            color=FAINT, linewidth=0.6, zorder=1, clip_on=False,
        )  # fmt: skip
        line.set_in_layout(False)
        axis.add_artist(line)


def _look(model: str) -> tuple[str, str, float]:
    """Return colour, mark and its size: two models frame the others."""
    if model == RETRAINED:
        return PALETTE[2], "*", 15
    return (INK, "s", 7) if model == ORIGINAL else (PALETTE[0], "o", 6)


def _caption(detector: str, panels: Sequence[_Panel], behind: Sequence[Row]) -> str:
    seeds = max(int(row["seeds"]) for row in behind)
    return (
        "A point a model, with 95 % intervals. Star: the retrained model, which never saw the "
        "forget set, is the target; square: the original, from which every method starts. To the "
        f"left of the dashed line {detector} finds less than in the retrained model: the forgotten "
        "texts stand out by being too unlikely. "
        f"{range_text(int(row['forget']) for row in behind)} forgotten texts and "
        f"{range_text(int(row['holdout']) for row in behind)} texts that no model saw, "
        + ("one training seed." if seeds == 1 else f"{seeds} training seeds.")
    )


def _alternatives(panels: Sequence[_Panel]) -> Iterator[str]:
    for panel in panels:
        listed = "; ".join(
            f"{point.name} AUC difference "
            f"{interval_text(point.x['value'], point.x['low'], point.x['high'])}, loss above the "
            f"original's {-point.y['value']:+.2f}"
            for point in panel.points
        )
        yield f"{panel.title}: {listed}."
