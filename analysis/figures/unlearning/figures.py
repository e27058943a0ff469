"""The figure of an unlearning study: forgetting against utility, a point a model.

The retrained model is the target: it never saw the forget set, so no detector should tell more from
the unlearned model than from it, and its loss on other texts is what training without the forget
set costs. An unlearned model should stand at the retrained one by every measure at once; one that
stands there by one alone has met a measure, and has not forgotten.
"""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NamedTuple

from analysis.figures.captions import interval_text, range_text, seeds_text
from analysis.figures.panel import INK, PALETTE, Axis, Figure, Panel, Rule, Series
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
    has_value,
)

_UTILITY = (
    ("retain_log_probability_difference", "retained texts"),
    ("general_log_probability_difference", "general text"),
)
_DIFFERENCE = "auc_difference"
_MAX_ARMS = 3
_LINEAR = 0.05
"""Nats up to which the scale of losses is linear."""
_TICKS = (0.05, 0.1, 0.3, 1, 3, 10, 30, 100)
_WIDE = 0.8
"""An AUC difference beyond this is no less of a failure: the axis ends there."""
_MARKS = {RETRAINED: (PALETTE[2], "*", 15.0), ORIGINAL: (INK, "s", 7.0)}
"""Two models frame the others."""


class _Point(NamedTuple):
    """One model by two measures."""

    name: str
    model: str
    x: Row
    y: Row


def target_figure(measured: MeasuredModels) -> Figure | None:
    """Return forgetting against utility; None where either was not measured.

    One arm has a panel for retained texts and one for general text; of several, the first three
    have a panel each, for retained texts.
    """
    detector = measured.headline_detector
    arms = measured.arms()
    panels = {}
    for label, arm in list(arms.items())[:_MAX_ARMS]:
        for measure, texts in _UTILITY[: 1 if len(arms) > 1 else None]:
            points = list(_target_points(arm, detector, measure)) if detector else []
            if any(point.model == UNLEARNED for point in points):
                title = f"Loss on {texts}" + (f" ({label})" if label else "")
                panels[title] = (texts, points)
    if not panels:
        return None
    every = [point for _, points in panels.values() for point in points]
    behind = [point.x for point in every if point.model == UNLEARNED]
    ends = [float(p.x[end]) for p in every for end in ("low", "value", "high")]
    low, high = min(filter(isfinite, ends)), max(filter(isfinite, ends))
    room = 0.05 * (high - low)
    across = Axis(limits=(max(low - room, -_WIDE), min(high + room, _WIDE)))
    return Figure(
        name="unlearning",
        title="Forgetting against utility",
        caption="A point a model, with 95 % intervals. Star: the retrained model, which never saw "
        "the forget set, is the target; square: the original, from which every method starts. To "
        f"the left of the dashed line {detector} finds less than in the retrained model: the "
        f"forgotten texts stand out by being too unlikely. "
        + _behind_text(behind),
        alternative="Scatter plot, a point a model. "
        + " ".join(_target_text(title, points) for title, (_, points) in panels.items()),
        panels=[
            _target_panel(title, texts, points, across) for title, (texts, points) in panels.items()
        ],
        rows=[
            {"panel": title, "model": point.model, "method": point.name, "detector": detector,
             **_columns("auc_difference", point.x), "texts": texts,
             **_columns("log_probability_difference", point.y)}
            for title, (texts, points) in panels.items()
            for point in points
        ],
        height=3.0,
        columns=1,
        shared="x",
        x=f"AUC of {detector}, less that of the retrained model "
        "(0: as if never seen; above: still remembered)",
    )  # fmt: skip


def _columns(name: str, row: Row) -> dict[str, object]:
    return {name: row["value"], f"{name}_low": row["low"], f"{name}_high": row["high"]}


def _behind_text(rows: Sequence[Row]) -> str:
    return (
        f"{range_text(int(row['forget']) for row in rows)} forgotten texts and "
        f"{range_text(int(row['holdout']) for row in rows)} texts that no model saw, "
        f"{seeds_text(int(row['seeds']) for row in rows)}"
    )


def _target_points(arm: MeasuredModels, detector: str, utility: str) -> Iterator[_Point]:
    """Yield the models that have both numbers.

    What a model is compared with has no row of its own: the original is where utility is counted
    from, and the original's difference to the retrained model is the retrained one's, turned round.
    """
    zero = {"value": 0.0, "low": 0.0, "high": 0.0}
    for model, method in arm.models:
        x = arm.get(model, method, _DIFFERENCE, detector=detector)
        y = arm.get(model, method, utility, of=VERSUS_ORIGINAL)
        if model == ORIGINAL:
            y = x and {**x, **zero}
        elif model == RETRAINED:
            y = arm.get(ORIGINAL, NO_METHOD, utility, of=VERSUS_RETRAINED)
            y = y and {**y, "value": -y["value"], "low": -y["high"], "high": -y["low"]}
            x = y and {**y, **zero}
        if model != BASE and x is not None and y is not None and has_value(x) and has_value(y):
            yield _Point(model if method == NO_METHOD else method, model, x, y)


def _target_panel(title: str, texts: str, points: Sequence[_Point], across: Axis) -> Panel:
    series: list[Series] = []
    rules = [Rule(0, "x")]
    for point in points:
        colour, mark, size = _MARKS.get(point.model, (PALETTE[0], "o", 6.0))
        forgot, kept = point.x, point.y
        x, y = [forgot["value"]], [-kept["value"]]
        series += [
            Series(x=x, y=y, low=[forgot["low"]], high=[forgot["high"]], interval="x", width=1.2,
                   label=point.name, colour=colour, mark=mark, size=size),
            Series(x=x, y=y, low=[-kept["high"]], high=[-kept["low"]], interval="y", width=1.2,
                   colour=colour),
        ]  # fmt: skip
        if point.model == RETRAINED:
            rules.append(Rule(y[0], "y"))
    # A good method loses a tenth of a nat, a ruined model thirty: by logarithms, the least on top.
    lost = [-point.y["value"] for point in points]
    low, high = min(*lost, -_LINEAR), max(*lost, 4 * _LINEAR)
    ticks = [sign * tick for sign in (-1, 1) for tick in _TICKS if low <= sign * tick <= 1.3 * high]
    down = Axis(
        label=f"Loss on {texts} above\nthe original's, nats a token",
        scale="symlog",
        linear=_LINEAR,
        limits=(high * 1.4, low * 1.4),
        ticks={0: "0", **{tick: f"{tick:+g}".replace("-", "−") for tick in ticks}},
    )
    return Panel(title=title, series=series, x=across, y=down, rules=rules, labels="above")


def _target_text(title: str, points: Sequence[_Point]) -> str:
    listed = "; ".join(
        f"{point.name} AUC difference {_interval(point.x)}, loss above the original's "
        f"{-point.y['value']:+.2f}"
        for point in points
    )
    return f"{title}: {listed}."


def _interval(row: Row) -> str:
    return interval_text(row["value"], row["low"], row["high"])
