"""Figures of trajectories: AUC along training, by copies seen, and by time since the last copy."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.arm import Cohort, axis_column
from analysis.copies import ALL, copies_order, is_dose
from analysis.figures.style import (
    MUTED,
    PALETTE,
    ReportFigure,
    chance_line,
    finish,
    new_figure,
    panel_columns,
    panels,
    shades,
    spread_labels,
    styled,
    tokens_label,
)
from analysis.tables import AUC, POOLED
from analysis.trajectory import Trajectory

MOST_PANELS = 6
MOST_DETECTORS = 4
_UNSEEN = "0"

Row = Mapping[str, Any]


class Point(NamedTuple):
    """One interval of a line."""

    x: float
    value: float
    low: float
    high: float


class Line(NamedTuple):
    """One line of a panel."""

    name: str
    colour: str
    points: list[Point]
    dashed: bool = False


def trajectory_figures(
    out: Path, found: Trajectory, axes: Sequence[str]
) -> tuple[ReportFigure, ...]:
    """Write figures/*.svg and *.png under `out`; figures without data are left out."""
    along = [row for row in found.progress.to_pylist() if row["dataset"] == POOLED]
    fading = [row for row in found.fading.to_pylist() if row["metric"] == AUC]
    best = best_detectors(along)
    if not best:
        return ()
    arms = _by_arm([*along, *fading], axes)
    names = list(dict.fromkeys(arms))
    folder = out / "figures"
    drawn = [
        _draw(
            folder,
            "trajectory",
            "AUC along training",
            {arm: _along(rows, best) for arm, rows in arms.items()},
            x="Tokens trained on",
            caption=(
                "Each model that was kept along the way, with 95 % bands: members of which it had "
                "seen a copy by then, against all non-members. Dashed: members that it had not "
                f"seen yet, under {best[0]}; they should stay at chance. {{counts}}"
            ),
            rows=[row for row in along if row["copies"] == ALL],
            logarithmic=_early(along),
        ),
        _draw(
            folder,
            "trajectory-copies",
            f"AUC along training by copies seen so far ({best[0]})",
            {arm: _by_copies(rows, best[0], "tokens") for arm, rows in arms.items()},
            x="Tokens trained on",
            caption=(
                "Members by the number of copies that the model had seen by then, against all "
                "non-members, with 95 % bands. {counts}"
            ),
            rows=[row for row in along if is_dose(row["copies"])],
            logarithmic=_early(along),
        ),
        _draw(
            folder,
            "fading",
            f"AUC by time since the last copy ({best[0]})",
            {arm: _by_copies(rows, best[0], "tokens_since") for arm, rows in arms.items()},
            x="Tokens trained on since the last copy was seen",
            caption=(
                "Pairs of a member and a model that has seen it, by the number of copies seen and "
                "the time since the last, each placed among the non-members under the same model; "
                "95 % bands draw whole groups of examples. The first point is the very step that "
                "held the copy. {counts}"
            ),
            rows=fading,
            logarithmic=True,
        ),
    ]
    if len(names) > MOST_PANELS:
        more = f" {len(names) - MOST_PANELS} further arms are in the tables."
        drawn = [figure and _with_caption(figure, figure.caption + more) for figure in drawn]
    return tuple(figure for figure in drawn if figure is not None)


def best_detectors(along: Sequence[Row]) -> list[str]:
    """Return the detectors worth a line: the best under the last models, and `loss`.

    Args:
        along: rows of trajectory.parquet, datasets pooled.
    """
    last = max((row["step"] for row in along), default=0)
    quality: dict[str, float] = {}
    for row in along:
        if row["step"] == last and row["copies"] == ALL and row["selection"] == "tuned":
            value = row["low"] if row["low"] == row["low"] else row["value"]
            quality[row["detector"]] = max(quality.get(row["detector"], 0.0), value)
    ranked = sorted(quality, key=lambda name: -quality[name])
    if "loss" in ranked[MOST_DETECTORS:]:
        return [*ranked[: MOST_DETECTORS - 1], "loss"]
    return ranked[:MOST_DETECTORS]


def _by_arm(rows: Sequence[Row], axes: Sequence[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        cohort = Cohort(tuple((axis, row[axis_column(axis)]) for axis in axes), "contaminated")
        found.setdefault(cohort.label(), []).append(row)
    return found


def _early(along: Sequence[Row]) -> bool:
    """Say whether the first models are so early that only a logarithm shows them."""
    steps = [row["step"] for row in along if row["step"] > 0]
    return bool(steps) and max(steps) > 16 * min(steps)


def _along(rows: Sequence[Row], best: Sequence[str]) -> list[Line]:
    lines = []
    for name, colour in zip(best, PALETTE, strict=False):
        points = _points(rows, name, ALL, "tokens")
        lines.append(Line(name, colour, points))
    lines.append(Line("not seen yet", MUTED, _points(rows, best[0], _UNSEEN, "tokens"), True))
    return [line for line in lines if line.points]


def _by_copies(rows: Sequence[Row], detector: str, x: str) -> list[Line]:
    labels = sorted({row["copies"] for row in rows if is_dose(row["copies"])}, key=copies_order)
    if x == "tokens_since":
        labels = [label for label in labels if label != _UNSEEN]
    lines = []
    for label, shade in zip(labels, shades(len(labels)), strict=True):
        words = (
            "none yet" if label == _UNSEEN else f"{label} {'copy' if label == '1' else 'copies'}"
        )
        lines.append(Line(words, shade, _points(rows, detector, label, x), label == _UNSEEN))
    return [line for line in lines if line.points]


def _points(rows: Sequence[Row], detector: str, copies: str, x: str) -> list[Point]:
    found = [
        Point(row[x], row["value"], row["low"], row["high"])
        for row in rows
        if x in row
        and row["detector"] == detector
        and row["selection"] == "tuned"
        and row["copies"] == copies
        and row["low"] == row["low"]
    ]
    return sorted(found)


def _draw(
    folder: Path,
    name: str,
    title: str,
    arms: Mapping[str, Sequence[Line]],
    *,
    x: str,
    caption: str,
    rows: Sequence[Row],
    logarithmic: bool,
) -> ReportFigure | None:
    shown = [(arm, lines) for arm, lines in arms.items() if lines][:MOST_PANELS]
    if not shown:
        return None
    columns = panel_columns(len(shown))
    with styled():
        figure = new_figure(0.6 + (3.4 if columns > 1 else 3.9) * -(-len(shown) // columns))
        axes = panels(figure, len(shown), columns=columns)
        for axis, (arm, lines) in zip(axes, shown, strict=True):
            chance_line(axis, vertical=False)
            for line in lines:
                _line(axis, line)
            axis.set_title(arm or "all arms")
            axis.grid(True, axis="y")
        _scale(axes, [line for _, lines in shown for line in lines], logarithmic)
        for axis, (_, lines) in zip(axes, shown, strict=True):
            _names(axis, lines, columns)
        for axis in axes[-columns:]:
            axis.set_xlabel(x)
        for axis in axes[::columns]:
            axis.set_ylabel("AUC")
        return finish(
            figure, folder, name=name, title=title, caption=caption.format(counts=_counts(rows))
        )


def _line(axis: Any, line: Line) -> None:
    at = [point.x for point in line.points]
    axis.fill_between(
        at, [point.low for point in line.points], [point.high for point in line.points],
        color=line.colour, alpha=0.11, linewidth=0,
    )  # fmt: skip
    axis.plot(
        at, [point.value for point in line.points], color=line.colour,
        linewidth=1.4 if line.dashed else 2, marker="o", markersize=3 if line.dashed else 4,
        linestyle=(0, (4, 2)) if line.dashed else "-",
    )  # fmt: skip


def _scale(axes: Sequence[Any], lines: Sequence[Line], logarithmic: bool) -> None:
    """Scale the shared axis: linear up to its first step, logarithmic beyond, where asked for."""
    every = sorted({point.x for line in lines for point in line.points})
    positive = [x for x in every if x > 0]
    for axis in axes:
        if logarithmic and positive:
            axis.set_xscale("symlog", linthresh=positive[0], linscale=0.5)
            ticks = _ticks(positive[0], positive[-1])
            axis.set_xticks([0, *ticks] if every[0] == 0 else ticks)
            axis.minorticks_off()
        else:
            axis.locator_params(axis="x", nbins=5)
        axis.xaxis.set_major_formatter(tokens_label)


def _ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers between the two: 1, 3, 10, 30 …"""
    found = [
        factor * 10.0**power
        for power in range(13)
        for factor in (1, 3)
        if low * 0.99 <= factor * 10.0**power <= high * 1.01
    ]
    return found if len(found) <= 6 else found[::2]


def _names(axis: Any, lines: Sequence[Line], columns: int) -> None:
    """Write each line's name beside its end, in its colour."""
    ends = [line.points[-1] for line in lines]
    low, high = axis.get_ylim()
    heights = spread_labels([end.value for end in ends], 0.052 * (high - low) * min(columns, 2))
    width = 0.012 * max(len(line.name) for line in lines) * columns
    transform: Callable[..., Any] = axis.get_yaxis_transform
    for line, height in zip(lines, heights, strict=True):
        axis.text(
            1.01, height, line.name, color=line.colour, fontsize=8.5, fontweight="bold",
            va="center", transform=transform(), clip_on=False, in_layout=width < 1,
        )  # fmt: skip


def _counts(rows: Sequence[Row]) -> str:
    members = [row["n_members"] for row in rows]
    if not members:
        return ""
    seeds = max(row["n_seeds"] for row in rows)
    return (
        f"{min(members):,} to {max(members):,} members a point, up to "
        f"{max(row['n_nonmembers'] for row in rows):,} non-members; datasets pooled, tuned "
        + ("settings, one training seed." if seeds == 1 else f"settings, {seeds} training seeds.")
    )


def _with_caption(figure: ReportFigure, caption: str) -> ReportFigure:
    return ReportFigure(
        name=figure.name, title=figure.title, caption=caption, svg=figure.svg, png=figure.png
    )
