"""Lines with bands in panels: AUC against a number, one panel an arm, lines named at their ends."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from analysis.figures.captions import interval_text
from analysis.figures.style import (
    INK,
    LINE_LOOKS,
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
    spread_labels,
)

MAX_PANELS = 6


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


def draw_lines(
    folder: Path,
    name: str,
    title: str,
    arms: Mapping[str, Sequence[Line]],
    *,
    x: str,
    caption: str,
    logarithmic: bool,
    written: Callable[[float, int], str],
) -> ReportFigure | None:
    """Draw one panel an arm, at most six; None where there is nothing to draw.

    Args:
        folder: where to write NAME.svg, NAME.png and NAME.csv.
        name: file stem, and anchor in the page.
        title: of the figure.
        arms: the lines of each panel by its title.
        x: what the common axis shows.
        caption: of the figure.
        logarithmic: scale the axis by logarithms, linear up to its first step above 0.
        written: how a number of the axis is written.
    """
    shown = [(arm, lines) for arm, lines in arms.items() if lines][:MAX_PANELS]
    if not shown:
        return None
    rest = len(arms) - len(shown)
    more = f" {rest} further arms are in the tables." if rest > 0 else ""
    columns = panel_columns(len(shown))
    with house_style():
        figure = new_figure(0.6 + (3.4 if columns > 1 else 3.9) * -(-len(shown) // columns))
        axes = panels(figure, len(shown), columns=columns)
        for axis, (arm, lines) in zip(axes, shown, strict=True):
            draw_chance_line(axis, vertical=False)
            for at, line in enumerate(lines):
                _line(axis, line, LINE_LOOKS[at % len(LINE_LOOKS)])
            panel_title(axis, arm, columns=columns)
            axis.grid(True, axis="y")
        _scale(
            axes,
            [line for _, lines in shown for line in lines],
            logarithmic,
            written,
            max_count=7 - columns,
        )
        for axis, (_, lines) in zip(axes, shown, strict=True):
            _names(axis, lines, columns)
        # One label for all: three of them side by side would run into each other.
        figure.supxlabel(x, fontsize=10, color=MUTED)
        for axis in axes[::columns]:
            axis.set_ylabel("AUC")
        return save_figure(
            figure,
            folder,
            name=name,
            title=title,
            caption=caption + more,
            alternative=f"Lines of AUC against {x.lower()}. "
            + " ".join(_alternative_text(shown, written)),
            data=[
                {"panel": arm, "line": line.name, x: point.x, **_numbers(point)}
                for arm, lines in arms.items()
                for line in lines
                for point in line.points
            ],
        )


def _numbers(point: Point) -> dict[str, float]:
    return {"auc": point.value, "low": point.low, "high": point.high}


def _alternative_text(
    shown: Sequence[tuple[str, Sequence[Line]]], written: Callable[[float, int], str]
) -> Iterator[str]:
    """Yield where each line begins and ends, panel by panel."""
    for arm, lines in shown:
        ends = "; ".join(
            f"{line.name} "
            + " to ".join(
                dict.fromkeys(
                    f"{interval_text(point.value, point.low, point.high)} at {written(point.x, 0)}"
                    for point in (line.points[0], line.points[-1])
                )
            )
            for line in lines
        )
        yield f"{arm}: {ends}." if arm else f"{ends}."


def _line(axis: Any, line: Line, look: tuple[Any, str]) -> None:
    """Draw a line with its band: dashes and mark tell it from the others, as its colour does."""
    dashes, mark = ((0, (4, 2)), ".") if line.dashed else look
    at = [point.x for point in line.points]
    axis.fill_between(
        at, [point.low for point in line.points], [point.high for point in line.points],
        color=line.colour, alpha=0.11, linewidth=0,
    )  # fmt: skip
    axis.plot(
        at, [point.value for point in line.points], color=line.colour,
        linewidth=1.4 if line.dashed else 2, marker=mark, markersize=4.5, linestyle=dashes,
    )  # fmt: skip


def _scale(
    axes: Sequence[Any],
    lines: Sequence[Line],
    logarithmic: bool,
    written: Callable[[float, int], str],
    *,
    max_count: int,
) -> None:
    """Scale the shared axis: linear up to its first step, logarithmic beyond, where asked for."""
    every = sorted({point.x for line in lines for point in line.points})
    positive = [x for x in every if x > 0]
    for axis in axes:
        if logarithmic and positive:
            axis.set_xscale("symlog", linthresh=positive[0], linscale=0.5)
            few = len(every) <= max_count
            ticks = positive if few else _ticks(positive[0], positive[-1], max_count)
            axis.set_xticks([0, *ticks] if every[0] == 0 else ticks)
            axis.minorticks_off()
        elif len(every) <= max_count:
            # A few values that were chosen are worth more than round numbers between them.
            axis.set_xticks(every)
        else:
            axis.locator_params(axis="x", nbins=5)
        axis.xaxis.set_major_formatter(written)


def _ticks(low: float, high: float, max_count: int) -> list[float]:
    """Return a few round numbers between the two: 1, 3, 10, 30 …, or powers of ten alone."""
    for factors in ((1, 3), (1,)):
        found = [
            factor * 10.0**power
            for power in range(-9, 13)
            for factor in factors
            if low * 0.99 <= factor * 10.0**power <= high * 1.01
        ]
        if len(found) <= max_count:
            break
    return found


def _names(axis: Any, lines: Sequence[Line], columns: int) -> None:
    """Write each line's name beside its end, in its colour."""
    ends = [line.points[-1] for line in lines]
    low, high = axis.get_ylim()
    gap = 0.052 * (high - low) * min(columns, 2)
    heights = spread_labels([end.value for end in ends], gap, top=high)
    width = 0.012 * max(len(line.name) for line in lines) * columns
    transform: Callable[..., Any] = axis.get_yaxis_transform
    for line, height in zip(lines, heights, strict=True):
        # Letters are thin: a colour between two of the palette is too faint for them.
        colour = line.colour if line.colour in (*PALETTE, MUTED) else INK
        axis.text(
            1.01, height, line.name, color=colour, fontsize=8.5, fontweight="bold",
            va="center", transform=transform(), clip_on=False, in_layout=width < 1,
        )  # fmt: skip
