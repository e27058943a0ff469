"""Lines with bands: AUC against a number, a panel an arm, lines named at their ends."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from analysis.figures.captions import further_text, interval_text
from analysis.figures.panel import LOOKS, MAX_PANELS, MUTED, Axis, Figure, Panel, Rule, Series


class Point(NamedTuple):
    """One interval of a line."""

    x: float
    value: float
    low: float
    high: float


def line(name: str, colour: str, points: Iterable[Point], *, look: int = 0) -> Series:
    """Return a line with its band; lines of one panel differ in their look, as in their colour."""
    x, value, low, high = zip(*points, strict=True)
    dashes, mark = LOOKS[look % len(LOOKS)]
    if colour == MUTED:
        dashes, mark = "dashed", "."
    return Series(x=x, y=value, low=low, high=high, label=name, colour=colour, line=dashes,
                  mark=mark, size=4.5, width=1.4 if colour == MUTED else 2.0)  # fmt: skip


def lines_figure(
    name: str,
    title: str,
    arms: Mapping[str, Sequence[Series]],
    *,
    x: str,
    caption: str,
    logarithmic: bool,
    written: Callable[[float], str],
) -> Figure | None:
    """Return one panel an arm, at most six; None where there is nothing to draw.

    Args:
        name: file stem, and anchor in the page.
        title: of the figure.
        arms: the lines of each panel by its title.
        x: what the common axis shows.
        caption: of the figure.
        logarithmic: scale the axis by logarithms, linear up to its first step above 0.
        written: how a number of the axis is written.
    """
    shown = dict([(arm, lines) for arm, lines in arms.items() if lines][:MAX_PANELS])
    if not shown:
        return None
    values = sorted({at for lines in shown.values() for one in lines for at in one.x})
    positive = [at for at in values if at > 0]
    axis = Axis(
        scale="symlog" if logarithmic and positive else "linear",
        linear=positive[0] if positive else 1.0,
        ticks={at: written(at) for at in values},
    )
    return Figure(
        name=name,
        title=title,
        caption=caption + further_text(len(arms) - len(shown), "arms are in the tables"),
        alternative=f"Lines of AUC against {x.lower()}. "
        + " ".join(_alternative_text(shown, written)),
        panels=[
            Panel(title=arm, series=lines, x=axis, rules=[Rule(0.5, "y")])
            for arm, lines in shown.items()
        ],
        rows=[
            {"panel": arm, "line": one.label, x: at, "auc": value, "low": low, "high": high}
            for arm, lines in arms.items()
            for one in lines
            for at, value, low, high in zip(one.x, one.y, one.low, one.high, strict=True)
        ],
        height=3.4 if len(shown) > 1 else 3.9,
        x=x,
        y="AUC",
    )


def _alternative_text(
    shown: Mapping[str, Sequence[Series]], written: Callable[[float], str]
) -> Iterator[str]:
    """Yield where each line begins and ends, panel by panel."""
    for arm, lines in shown.items():
        ends = "; ".join(
            f"{one.label} "
            + " to ".join(
                dict.fromkeys(
                    f"{interval_text(one.y[at], one.low[at], one.high[at])} at {written(one.x[at])}"
                    for at in (0, -1)
                )
            )
            for one in lines
        )
        yield f"{arm}: {ends}." if arm else f"{ends}."
