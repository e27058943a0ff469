"""The factors in full: a line an arm and factor, tests, and who is best where.

First comes the dose-response of detectability: AUCs by copies, and the line that is fitted to them.
"""

from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np

from analysis.arm import axis_column, axis_names, short_axis
from analysis.arm_words import arm_words
from analysis.factors.contrasts import BEST, CONTRAST, GAP
from analysis.factors.doses import (
    COPIES,
    RESPONSE,
    Response,
    copy_responses,
    doubled,
    factor_value,
    measure_arms,
    short_number,
    shown_reach,
)
from analysis.factors.lines import Line as Fit
from analysis.factors.study import collect_study
from analysis.findings import Row
from analysis.page.crossed import MAX_PANELS
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Part, fold, present
from analysis.page.table import Table, listing, p_text
from analysis.page.view import View
from analysis.summary import Names
from analysis.tables import POOLED
from analysis.unit import AUC, Dot

_MISFIT = 0.05
_OPEN_ROWS = 12
"""A longer table of one factor is folded."""


def factor_tables(view: View) -> list[Part]:
    """Return what is found about the factors in full; nothing where the study varies nothing."""
    table = view.inputs.analysis.factors
    every = [] if table is None else table.to_pylist()
    axes, names = axis_names(view.inputs.arms), view.names
    rows = view.factor_rows
    if not rows:
        return []
    factors = list(dict.fromkeys(row["factor"] for row in rows if row["kind"] == RESPONSE))
    factors += [name for name in axes if name not in factors and name.split(".")[0] != COPIES]
    factors.sort(key=lambda name: name != COPIES)
    responses = [shown for name in factors if (shown := _responses(rows, axes, name, names))]
    tables = (
        _best(every, axes, names),
        _gaps(rows, axes, names),
        _contrasts(rows, axes, names),
    )
    return present(
        dose_response_picture(view),
        [fold(shown) if len(shown.rows) > _OPEN_ROWS else shown for shown in responses],
        [fold(shown) for shown in tables if shown is not None],
    )


def _responses(rows: Sequence[Row], axes: Sequence[str], factor: str, names: Names) -> Table | None:
    slopes = [row for row in rows if (row["factor"], row["term"]) == (factor, "slope")]
    lines = []
    for row in slopes:
        if row["reason"]:
            continue
        rest = {
            r["term"]: r
            for r in rows
            if r["kind"] == RESPONSE and r["detector"] == row["detector"] and _same(r, row, axes)
        }
        misfit = rest["misfit"]["p_value"]
        lines.append(
            (
                names.get(row["detector"], row["detector"]),
                arm_of(row, axes),
                f"{row['value']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]",
                p_text(row["p_value"]),
                rest["reach"]["shown"],
                "no line" if misfit < _MISFIT else "",
                f"{row['n_members']:,}",
                f"{row['n_seeds']}",
            )
        )
    return listing(
        f"Response to {noun_of(factor)}",
        ("Detector", "Arm", "Slope", "p", "AUC 0.75 at", "Shape", "Members", "Seeds"),
        lines,
        f"Slope: change of the probit of AUC for each doubling of {doubled(factor)}, "
        "with its 95 % interval. AUC 0.75: where the line reaches it, with Fieller's interval; "
        "> or < and a number: beyond what was measured; any: the data leave out nothing. Shape: "
        "where a test refuses a line (p under 0.05), its numbers are a summary at best.",
    )


def _contrasts(rows: Sequence[Row], axes: Sequence[str], names: Names) -> Table | None:
    return listing(
        "Paired differences between arms",
        ("Detector", "Axis", "Arm", "Less", "All else", "Difference", "Band", "p", "Seeds"),
        [
            (
                names.get(row["detector"], row["detector"]),
                short_axis(row["factor"]),
                row["level"],
                row["versus"],
                arm_of(row, axes),
                f"{row['value']:+.3f}",
                _band(row),
                p_text(row["p_value"]),
                f"{row['n_seeds']}",
            )
            for row in rows
            if row["kind"] == CONTRAST
        ],
        "AUC of an arm less that of the first value of its axis, on the same rows and seeds. The "
        "band holds all differences of a detector at once (Bonferroni); p is corrected alike.",
    )


def _best(rows: Sequence[Row], axes: Sequence[str], names: Names) -> Table | None:
    places: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["kind"] == BEST:
            places.setdefault((arm_of(row, axes), row["dataset"]), []).append(row)
    return listing(
        "Which detector is best where",
        ("Dataset", "Arm", "May be the best", "Out", "Members", "Seeds"),
        [
            (
                "all datasets" if dataset == POOLED else dataset,
                arm,
                ", ".join(
                    f"{names.get(row['detector'], row['detector'])} {row['value']:.2f}"
                    for row in found
                    if row["shown"]
                ),
                f"{sum(not row['shown'] for row in found)}",
                f"{found[0]['n_members']:,}",
                f"{found[0]['n_seeds']}",
            )
            for (arm, dataset), found in places.items()
        ],
        "The set holds the truly best detector with 95 % confidence, however many are compared "
        "(comparisons with the best, Hsu 1984); behind each its AUC. Out: how many are told from "
        "the best.",
    )


def _gaps(rows: Sequence[Row], axes: Sequence[str], names: Names) -> Table | None:
    return listing(
        "Gap to the upper bound",
        ("Detector", "Bound", "Arm", "Gap", "Band", "Seeds"),
        [
            (
                names.get(row["detector"], row["detector"]),
                row["versus"],
                arm_of(row, axes),
                f"{row['value']:+.3f}",
                _band(row),
                f"{row['n_seeds']}",
            )
            for row in rows
            if row["kind"] == GAP
        ],
        "AUC of a detector that knows a model without the copies (reference) or shadow models "
        "(lira, rmia), less that of each detector, on the same rows. The band "
        "holds all of one arm.",
    )


def _band(row: Row) -> str:
    if isfinite(row["low"]):
        return f"{row['low']:+.3f} to {row['high']:+.3f}"
    return f"none: {row['reason']}"


def _same(one: Row, other: Row, axes: Sequence[str]) -> bool:
    return bool(
        one["factor"] == other["factor"]
        and all(one[axis_column(axis)] == other[axis_column(axis)] for axis in axes)
    )


def arm_of(row: Row, axes: Sequence[str]) -> str:
    """Return the arm of a row in words."""
    return arm_words((axis, row[axis_column(axis)]) for axis in axes)


def noun_of(factor: str) -> str:
    """Return what a factor is called."""
    return "the length of the text" if factor == "length" else factor


_STEPS = 60


def dose_response_picture(view: View) -> Picture | None:
    """Return the fitted lines, a panel an arm and detector; None without any."""
    inputs, names = view.inputs, view.few(view.shown)
    study = collect_study(inputs.arms, inputs.analysis.choices_by_cohort, inputs.analysis_settings)
    fitted = [
        (response, response.line)
        for name in names
        if name in study.detectors
        for response in copy_responses(
            study,
            measure_arms(study, name, inputs.analysis_settings),
            name,
            confidence=inputs.analysis_settings.confidence,
        )
        if response.dataset == POOLED and isinstance(response.line, Fit)
    ]
    if not fitted:
        return None
    fitted.sort(key=lambda pair: str(pair[0].cohort))
    doses = sorted({float(x) for _, line in fitted for x in line.points.x})
    panels = Panels(
        panels=[
            LinePanel(
                view.title(response.detector),
                [
                    Line(_curve(line), view.kind(response.detector), marks=False),
                    Line(_points(line), "points"),
                ],
                view.words(response.cohort),
            )
            for response, line in fitted[:MAX_PANELS]
        ],
        x=[(x, short_number(factor_value(COPIES, x))) for x in doses],
        y=[(at / 4, f"{at / 4:.2f}") for at in range(5)],
        centre=0.5,
        x_label="copies, as log2(1 + copies)",
        label="Curves of AUC against copies: "
        + "; ".join(_reached(view, response) for response, _ in fitted),
        per_row=len(names),
    )
    caption = (
        "Probit of AUC as a line in log2(1 + copies), with its 95 % band; points are the AUCs of "
        "each number of copies with intervals of their own. All datasets pooled."
    )
    rows = [row for response, line in fitted for row in _rows(response, line)]
    title = "Dose-response: AUC against copies"
    return picture("dose-response", title, caption, panels, 1180, rows)


def _reached(view: View, response: Response) -> str:
    head = ", ".join(filter(None, (view.title(response.detector), view.words(response.cohort))))
    return f"{head} reaches 0.75 at {shown_reach(response)} copies"


def _points(line: Fit) -> list[tuple[float, Dot]]:
    points = line.points
    numbers = zip(points.x, points.auc, points.low, points.high, points.members, strict=True)
    return [
        (float(x), Dot(value, low, high, f"{AUC.text(value, low, high)} · {members:,.0f} members"))
        for x, value, low, high, members in numbers
    ]


def _curve(line: Fit) -> list[tuple[float, Dot]]:
    x = np.linspace(float(line.points.x.min()), float(line.points.x.max()), _STEPS)
    numbers = np.stack([x, *line.band(x)], axis=1).tolist()
    return [(at, Dot(middle, low, high, "")) for at, middle, low, high in numbers]


def _rows(response: Response, line: Fit) -> Iterator[dict[str, object]]:
    for part, points in (("point", _points(line)), ("curve", _curve(line))):
        members = line.points.members.astype(int).tolist() if part == "point" else []
        for at, (x, dot) in enumerate(points):
            yield {
                "arm": response.cohort.label(),
                "detector": response.detector,
                "part": part,
                "copies": factor_value(COPIES, x),
                "auc": float(dot.value),
                "low": float(dot.low),
                "high": float(dot.high),
                "members": members[at] if members else None,
            }
