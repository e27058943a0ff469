"""Figures of the factors: dose-response curves with bands, and a forest of paired contrasts.

Beside each figure lies NAME.csv, the numbers that it is drawn from.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.arm import short_axis
from analysis.factors.comparisons import Comparison
from analysis.factors.findings import short_number, shown_reach
from analysis.factors.responses import COPIES, Response, factor_value
from analysis.figures.data import Row
from analysis.figures.style import (
    INK,
    MUTED,
    PALETTE,
    ReportFigure,
    draw_chance_line,
    house_style,
    new_figure,
    panel_columns,
    panel_title,
    panels,
    save_figure,
)
from analysis.tables import POOLED

_MAX_PANELS = 6
_MAX_CONTRASTS = 16
_STEPS = 60


def draw_factors(
    folder: Path,
    responses: Sequence[Response],
    comparisons: Sequence[Comparison],
    emphasised: Sequence[str],
) -> list[ReportFigure]:
    """Draw what there is of both figures.

    Args:
        folder: where to write.
        responses: all lines.
        comparisons: all contrasts.
        emphasised: the detectors that are drawn, the best first.
    """
    figures = [
        _draw_responses(folder, responses, emphasised),
        _draw_forest(folder, comparisons, emphasised[:1]),
    ]
    return [figure for figure in figures if figure is not None]


def _draw_responses(
    folder: Path, responses: Sequence[Response], emphasised: Sequence[str]
) -> ReportFigure | None:
    """Draw AUC against copies: a panel an arm (or arms of other doses together)."""
    arms: dict[str, dict[str, Response]] = {}
    for one in responses:
        if one.factor == COPIES and one.dataset == POOLED and one.line is not None:
            arms.setdefault(one.cohort.label(), {})[one.detector] = one
    shown = {
        arm: [found[name] for name in emphasised if name in found]
        for arm, found in list(arms.items())[:_MAX_PANELS]
    }
    shown = {arm: found for arm, found in shown.items() if found}
    if not shown:
        return None
    colours = dict(zip(emphasised, PALETTE, strict=False))
    columns = panel_columns(len(shown))
    drawn: list[Row] = []
    with house_style():
        figure = new_figure(0.8 + 3.4 * -(-len(shown) // columns))
        axes = panels(figure, len(shown), columns=columns)
        for axis, (arm, found) in zip(axes, shown.items(), strict=True):
            draw_chance_line(axis, vertical=False)
            axis.axhline(0.75, color=MUTED, linewidth=0.8, linestyle=(0, (1, 3)))
            for one in found:
                drawn += _draw_line(axis, one, arm, colours[one.detector])
            panel_title(axis, arm or "all arms together", columns=columns)
            axis.grid(True, axis="y")
            axis.legend(loc="upper left", fontsize=8, frameon=False)
            ticks = sorted({float(x) for one in found if one.line for x in one.line.points.x})
            axis.set_xticks(ticks, [short_number(factor_value(COPIES, x)) for x in ticks])
        for axis in axes[::columns]:
            axis.set_ylabel("AUC")
        figure.supxlabel("copies, as log2(1 + copies)", fontsize=10, color=MUTED)
        words = [
            f"{arm + ': ' if arm else ''}{one.detector} reaches 0.75 at {shown_reach(one)} copies"
            for arm, found in shown.items()
            for one in found
        ]
        left = len(arms) - len(shown)
        return save_figure(
            figure,
            folder,
            name="dose-response",
            title="Dose-response: AUC against copies",
            caption="Probit of AUC as a line in log2(1 + copies), with its 95 % band; points are "
            "the AUCs of each number of copies with intervals of their own. Dotted: AUC 0.75. All "
            "datasets pooled." + (f" {left} further arms are in findings.parquet." if left else ""),
            alternative="Curves of AUC against copies. " + "; ".join(words) + ".",
            data=drawn,
        )


def _draw_line(axis: Any, one: Response, arm: str, colour: str) -> list[Row]:
    line = one.line
    assert line is not None
    points = line.points
    x = np.linspace(float(points.x.min()), float(points.x.max()), _STEPS)
    middle, low, high = line.band(x)
    axis.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
    axis.plot(x, middle, color=colour, linewidth=2, label=one.detector)
    errors = np.abs(np.stack([points.auc - points.low, points.high - points.auc]))
    axis.errorbar(
        points.x, points.auc, yerr=errors, fmt="o", color=colour, markersize=4, linewidth=1
    )
    found: list[Row] = []
    for part, places, values, lows, highs, members in (
        ("point", points.x, points.auc, points.low, points.high, points.members),
        ("curve", x, middle, low, high, np.full(len(x), np.nan)),
    ):
        found += [
            {
                "arm": arm,
                "detector": one.detector,
                "part": part,
                "copies": factor_value(COPIES, float(place)),
                "auc": float(values[k]),
                "low": float(lows[k]),
                "high": float(highs[k]),
                "members": None if np.isnan(members[k]) else int(members[k]),
            }
            for k, place in enumerate(places)
        ]
    return found


def _draw_forest(
    folder: Path, comparisons: Sequence[Comparison], emphasised: Sequence[str]
) -> ReportFigure | None:
    """Draw the paired differences of the best detector, all datasets pooled."""
    found = [
        one
        for one in comparisons
        if one.dataset == POOLED and one.detector in emphasised and not one.contrast.reason
    ]
    if not found:
        return None
    shown = found[:_MAX_CONTRASTS]
    drawn: list[Row] = []
    with house_style():
        figure = new_figure(1.2 + 0.36 * len(shown))
        axis = figure.subplots()
        axis.axvline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        for at, one in enumerate(shown):
            contrast = one.contrast
            sure = contrast.low > 0 or contrast.high < 0
            colour = PALETTE[0] if sure else MUTED
            axis.plot([contrast.low, contrast.high], [at, at], color=colour, linewidth=1.2)
            ends = [contrast.alone_low, contrast.alone_high]
            axis.plot(ends, [at, at], color=colour, linewidth=3.2)
            axis.plot([contrast.value], [at], "o", color=INK, markersize=5)
            drawn.append(
                {
                    "contrast": contrast_label(one),
                    "difference": contrast.value,
                    "low": contrast.low,
                    "high": contrast.high,
                    "alone_low": contrast.alone_low,
                    "alone_high": contrast.alone_high,
                    "p_value": contrast.p_value,
                }
            )
        axis.set_yticks(range(len(shown)), [contrast_label(one) for one in shown])
        axis.invert_yaxis()
        axis.grid(True, axis="x")
        axis.set_xlabel("difference of AUC")
        left = len(found) - len(shown)
        return save_figure(
            figure,
            folder,
            name="contrasts",
            title=f"Paired differences between arms ({emphasised[0]})",
            caption="Each value of an axis less its first, on the same rows and seeds. Thick: the "
            "95 % interval of one difference for itself; thin: a band that holds all of them at "
            "once, in colour where it leaves out 0. All datasets pooled, members with a copy."
            + (f" {left} further differences are in findings.parquet." if left else ""),
            alternative="Differences of AUC. "
            + "; ".join(
                f"{contrast_label(one)}: {one.contrast.value:+.3f} from {one.contrast.low:+.3f} to "
                f"{one.contrast.high:+.3f}"
                for one in shown
            )
            + ".",
            data=drawn,
        )


def contrast_label(one: Comparison) -> str:
    """Return what is compared, in words."""
    rest = one.cohort.label()
    what = f"{short_axis(one.axis)} {one.level} − {one.versus}"
    return f"{what} ({rest})" if rest else what
