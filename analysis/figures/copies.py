"""AUC against copies: as measured, number by number, and as a fitted dose-response curve.

Colours are detectors; arms of one panel differ in their dashes, marks and a letter behind the
detector's name, which a key explains.
"""

import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from analysis.arm import Cohort, arm_label
from analysis.copy_bins import copies_middle, copies_order, is_dose
from analysis.factors.findings import short_number, shown_reach
from analysis.factors.responses import COPIES, Response, factor_value
from analysis.figures.captions import (
    cell_columns,
    further_text,
    interval_text,
    range_text,
    seeds_text,
)
from analysis.figures.panel import (
    LOOKS,
    MAX_PANELS,
    MUTED,
    PALETTE,
    Axis,
    Figure,
    Panel,
    Row,
    Rule,
    Series,
    detector_colours,
)
from analysis.metrics_table import Cell, CohortMetrics
from analysis.selection.ranking import reported_cell
from analysis.tables import POOLED

_ONE_DOSE = "one dose"
_STEPS = 60


class _Look(NamedTuple):
    """How the lines of one arm are drawn."""

    line: str
    mark: str
    letter: str = ""
    """Stands behind the name of each of its lines; empty where one arm alone has lines."""


def copies_figure(tables: Sequence[CohortMetrics], emphasised: Sequence[str]) -> Figure | None:
    """Return lines with bands for arms with several doses, diamonds for arms with one.

    One panel for each setting of the other axes. Returns None where fewer than two doses have
    enough members.
    """
    grouped: dict[str, list[CohortMetrics]] = {}
    for table in tables:
        if _doses(table):
            others = (pair for pair in table.cohort.axes if not _is_copies(pair[0]))
            grouped.setdefault(arm_label(others), []).append(table)
    labels = {label for table in tables for label in _doses(table)}
    if len(labels) < 2:
        return None
    shown = dict(list(grouped.items())[:MAX_PANELS])
    looks = _looks([table for same in shown.values() for table in same])
    cells = [
        cell for table in tables for name in emphasised for cell in _cells(table, name).values()
    ]
    behind = (
        f"{range_text(cell.n_members for cell in cells)} members and "
        f"{range_text(cell.n_nonmembers for cell in cells)} non-members a point, "
        f"{seeds_text(cell.n_seeds for cell in cells)}"
        if cells
        else ""
    )
    doses = map(copies_middle, labels)
    axis = Axis(scale="doses", ticks={dose: f"{dose:g}" for dose in doses})
    return Figure(
        name="copies",
        title="AUC against the number of copies",
        caption="Lines with 95 % bands: arms in which members drew different numbers of copies, "
        "each number against all non-members (0: members that drew none; a range of numbers "
        "stands at its middle). "
        + ("Diamonds: arms with one dose. " if _ONE_DOSE in looks else "")
        + f"Tuned settings, all datasets pooled. {behind}"
        + further_text(len(grouped) - len(shown), "combinations are in the tables"),
        alternative="Lines of AUC against realised copies. "
        + " ".join(
            _curve_text(title, table, emphasised[0])
            for title, same in shown.items()
            for table in same
        ),
        panels=[
            Panel(title=title, series=_curves(same, emphasised, looks), x=axis,
                  rules=[Rule(0.5, "y")])
            for title, same in shown.items()
        ],
        rows=list(_copies_rows(grouped, emphasised)),
        x="Realised copies",
        y="AUC",
        key=[
            Series(x=(), y=(), colour=MUTED, line=look.line, mark=look.mark,
                   label=f"{look.letter}: {name}" if look.letter else name)
            for name, look in looks.items()
            if len(looks) > 1
        ],
    )  # fmt: skip


def _doses(table: CohortMetrics) -> list[str]:
    labels = [label for label in table.values("copies") if is_dose(label)]
    return sorted(labels, key=copies_order)


def _cells(table: CohortMetrics, detector: str) -> dict[str, Cell]:
    """Return a detector's AUCs by dose, rising, where there are any."""
    cells = {label: reported_cell(table, detector, copies=label) for label in _doses(table)}
    return {label: cell for label, cell in cells.items() if cell is not None and cell.available}


def _is_copies(key: str) -> bool:
    return key.split(".")[0] == COPIES


def _dose_axis(cohort: Cohort) -> str:
    """Return what the arm says of copies: what tells it from the others of its panel."""
    return ", ".join(v for key, v in cohort.axes if v and _is_copies(key)) or COPIES


def _looks(tables: Sequence[CohortMetrics]) -> dict[str, _Look]:
    """Give each kind of dose that draws a line a look of its own, in order of appearance."""
    names = dict.fromkeys(_dose_axis(table.cohort) for table in tables if len(_doses(table)) > 1)
    letters = string.ascii_lowercase if len(names) > 1 else ""
    looks = {
        name: _Look(*LOOKS[at % len(LOOKS)], letters[at : at + 1]) for at, name in enumerate(names)
    }
    if any(len(_doses(table)) == 1 for table in tables):
        looks[_ONE_DOSE] = _Look("", "D")
    return looks


def _curves(
    tables: Sequence[CohortMetrics], emphasised: Sequence[str], looks: Mapping[str, _Look]
) -> list[Series]:
    """Return the lines and diamonds of a panel; of those with one name the last is labelled."""
    curves: list[tuple[str, Series]] = []
    for detector, colour in zip(emphasised, PALETTE, strict=False):
        for table in tables:
            single = len(_doses(table)) == 1
            look = looks[_ONE_DOSE if single else _dose_axis(table.cohort)]
            cells = _cells(table, detector)
            if cells:
                series = Series(
                    x=[copies_middle(label) for label in cells],
                    y=[cell.value for cell in cells.values()],
                    low=[cell.low for cell in cells.values()],
                    high=[cell.high for cell in cells.values()],
                    interval="y" if single else "band",
                    colour=colour,
                    line=look.line,
                    mark=look.mark,
                    width=1.0 if single else 2.0,
                )
                curves.append((f"{detector} {look.letter}".strip(), series))
    ends: dict[str, tuple[float, float]] = {}
    for name, series in curves:
        end = (series.x[-1], series.y[-1])
        ends[name] = max(ends.get(name, end), end)
    return [
        replace(series, label=name if (series.x[-1], series.y[-1]) == ends[name] else "")
        for name, series in curves
    ]


def _copies_rows(
    grouped: Mapping[str, Sequence[CohortMetrics]], detectors: Sequence[str]
) -> Iterator[Row]:
    """Yield every point, of panels that are not drawn, too."""
    for title, same in grouped.items():
        for table in same:
            cells = {detector: _cells(table, detector) for detector in detectors}
            for label in _doses(table):
                for detector in detectors:
                    if (cell := cells[detector].get(label)) is not None:
                        yield {
                            "panel": title,
                            "arm": _dose_axis(table.cohort),
                            "detector": detector,
                            "setting": cell.setting,
                            "copies": label,
                            **cell_columns(cell),
                        }


def _curve_text(title: str, table: CohortMetrics, detector: str) -> str:
    """Say what a detector has at each dose."""
    points = [
        f"{label}: {interval_text(cell.value, cell.low, cell.high)}"
        for label, cell in _cells(table, detector).items()
    ]
    head = ", ".join(part for part in (title, _dose_axis(table.cohort)) if part)
    return f"{head}, {detector} by copies, {'; '.join(points)}."


def dose_response_figure(responses: Sequence[Response], emphasised: Sequence[str]) -> Figure | None:
    """Return the fitted lines, a panel an arm (or arms of other doses together).

    Args:
        responses: all lines.
        emphasised: the detectors that are drawn, the best first.
    """
    arms: dict[str, dict[str, Response]] = {}
    for one in responses:
        if one.factor == COPIES and one.dataset == POOLED and one.line is not None:
            arms.setdefault(one.cohort.label(), {})[one.detector] = one
    shown = {
        arm: [fitted[name] for name in emphasised if name in fitted]
        for arm, fitted in list(arms.items())[:MAX_PANELS]
    }
    shown = {arm: fitted for arm, fitted in shown.items() if fitted}
    if not shown:
        return None
    colours = detector_colours(emphasised, emphasised)
    reached = "; ".join(
        f"{arm + ': ' if arm else ''}{one.detector} reaches 0.75 at {shown_reach(one)} copies"
        for arm, fitted in shown.items()
        for one in fitted
    )
    drawn = [(arm, one, *_fitted_series(one, colours[one.detector]))
             for arm, fitted in shown.items() for one in fitted]  # fmt: skip
    return Figure(
        name="dose-response",
        title="Dose-response: AUC against copies",
        caption="Probit of AUC as a line in log2(1 + copies), with its 95 % band; points are "
        "the AUCs of each number of copies with intervals of their own. Dotted: AUC 0.75. All "
        "datasets pooled."
        + further_text(len(arms) - len(shown), "arms are in findings.parquet"),
        alternative=f"Curves of AUC against copies. {reached}.",
        panels=[
            Panel(
                title=title or "all arms together",
                series=[series for arm, _, *both in drawn if arm == title for series in both],
                x=Axis(ticks={
                    float(x): short_number(factor_value(COPIES, float(x)))
                    for one in fitted if one.line for x in sorted(one.line.points.x)
                }),
                rules=[Rule(0.5, "y"), Rule(0.75, "y", "dotted")],
            )
            for title, fitted in shown.items()
        ],
        rows=[row for arm, one, *both in drawn for row in _fitted_rows(arm, one, *both)],
        height=3.4,
        x="copies, as log2(1 + copies)",
        y="AUC",
    )  # fmt: skip


def _fitted_series(one: Response, colour: str) -> tuple[Series, Series]:
    """Return the points of a response, and the curve through them."""
    assert one.line is not None
    points = one.line.points
    x = np.linspace(float(points.x.min()), float(points.x.max()), _STEPS)
    middle, low, high = one.line.band(x)
    return (
        Series(x=points.x, y=points.auc, low=points.low, high=points.high, interval="y", mark="o",
               size=4, width=1, colour=colour),
        Series(x=x, y=middle, low=low, high=high, line="solid", colour=colour, label=one.detector),
    )  # fmt: skip


def _fitted_rows(arm: str, one: Response, points: Series, curve: Series) -> Iterator[Row]:
    assert one.line is not None
    for part, series in (("point", points), ("curve", curve)):
        numbers = zip(series.x, series.y, series.low, series.high, strict=True)
        for at, (x, auc, low, high) in enumerate(numbers):
            yield {
                "arm": arm,
                "detector": one.detector,
                "part": part,
                "copies": factor_value(COPIES, float(x)),
                "auc": float(auc),
                "low": float(low),
                "high": float(high),
                "members": int(one.line.points.members[at]) if part == "point" else None,
            }
