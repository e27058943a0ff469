"""All factor estimates: one line per arm and factor, tests, and the best detector by arm.

First come pictures: AUC against each swept axis of numbers, and the dose-response of detectability,
which is AUCs by copies and the line that is fitted to them.
"""

from collections.abc import Iterator, Sequence
from math import isfinite, log10

import numpy as np

from analysis.arm import axis_column, short_axis
from analysis.arm_labels import arm_words
from analysis.factors import doses
from analysis.factors.contrasts import BEST, CONTRAST, GAP
from analysis.factors.lines import FittedLine as Fit
from analysis.factors.study import collect_study
from analysis.findings import Findings, Row, contaminated_cohorts, group_by
from analysis.page.crossed import MAX_PANELS, AxisHeading, cross
from analysis.page.drawing.panels import Line, LinePanel, Panels
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import OPEN_ROWS, Part, fold, present
from analysis.page.table import Table, listing, p_text, tokens_label
from analysis.page.view import ReportView
from analysis.tables import POOLED
from analysis.unit import AUC, DIFFERENCE, Dot, Unit

_SLOPE = Unit("", 2, signed=True)
_MISFIT = 0.05
_DECADE = 10 * (1 - 1e-9)
"""An axis that spans this ratio or a larger one is drawn by logarithms; 3e-4 / 3e-5 is a bit less
than ten in floats."""
_LARGE = 10_000
"""Whole numbers from here on are written as `300k`."""
_STEPS = 60


def factor_tables(view: ReportView) -> list[Part]:
    """Return all estimates of the factors; empty if the study varies nothing."""
    swept: list[Part] = present(*sweep_pictures(view))
    if not view.factor_rows:
        return swept
    responses = [row for row in view.factor_rows if row["kind"] == doses.RESPONSE]
    factors = list(dict.fromkeys(row["factor"] for row in responses))
    factors += [name for name in view.axes if name not in factors and not doses.is_copies(name)]
    factors.sort(key=lambda name: name != doses.COPIES)
    tables = [table for name in factors if (table := _responses(view, responses, name))]
    return present(
        swept,
        dose_response_picture(view),
        *(fold(table) if len(table.rows) > OPEN_ROWS else table for table in tables),
        *map(fold, (_best_table(view), _gaps(view), _contrasts(view))),
    )


def _responses(view: ReportView, responses: Sequence[Row], factor: str) -> Table | None:
    terms: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in responses:
        if row["factor"] == factor:
            arm = (row[axis_column(axis)] for axis in view.axes)
            terms.setdefault((row["detector"], *arm), {})[row["term"]] = row
    return listing(
        f"Response to {'the length of the text' if factor == 'length' else factor}",
        ("Detector", "Arm", "Slope", "p", "AUC 0.75 at", "Shape", "Members", "Seeds"),
        [
            (
                view.title(slope["detector"]),
                view.arm_of(slope),
                _SLOPE.text(slope["value"], slope["low"], slope["high"]),
                p_text(slope["p_value"]),
                line["reach"]["shown"],
                "no line" if line["misfit"]["p_value"] < _MISFIT else "",
                f"{slope['n_members']:,}",
                f"{slope['n_seeds']}",
            )
            for line in terms.values()
            if (slope := line.get("slope")) and not slope["reason"]
        ],
        f"Slope: change of the probit of AUC for each doubling of {doses.doubled(factor)}, "
        "with its 95 % interval. AUC 0.75: where the line reaches it, with Fieller's interval; "
        "> or < and a number: beyond what was measured; any: the data exclude nothing. Shape: if "
        "a test rejects a line (p under 0.05), its numbers are a summary at best.",
    )


def _contrasts(view: ReportView) -> Table | None:
    return listing(
        "Paired differences between arms",
        ("Detector", "Axis", "Arm", "Less", "All else", "Difference", "Band", "p", "Seeds"),
        [
            (
                view.title(row["detector"]),
                short_axis(row["factor"]),
                row["level"],
                row["versus"],
                view.arm_of(row),
                DIFFERENCE.number(row["value"]),
                _band(row),
                p_text(row["p_value"]),
                f"{row['n_seeds']}",
            )
            for row in view.factor_rows
            if row["kind"] == CONTRAST
        ],
        "AUC of an arm minus that of the first value of its axis, on the same rows and seeds. The "
        "band covers all differences of a detector simultaneously (Bonferroni); p is corrected "
        "likewise.",
    )


def _best_table(view: ReportView) -> Table | None:
    table = view.inputs.analysis.factors
    best = (row for row in table.to_pylist() if row["kind"] == BEST) if table else ()
    places = group_by(best, lambda row: (view.arm_of(row), row["dataset"]))
    return listing(
        "Best detector by arm",
        ("Dataset", "Arm", "May be the best", "Out", "Members", "Seeds"),
        [
            (
                "all datasets" if dataset == POOLED else dataset,
                arm,
                ", ".join(
                    f"{view.title(row['detector'])} {row['value']:.2f}"
                    for row in rows
                    if row["shown"]
                ),
                f"{sum(not row['shown'] for row in rows)}",
                f"{rows[0]['n_members']:,}",
                f"{rows[0]['n_seeds']}",
            )
            for (arm, dataset), rows in places.items()
        ],
        "The set holds the truly best detector with 95 % confidence, however many are compared "
        "(comparisons with the best, Hsu 1984); each with its AUC. Out: the number of detectors "
        "excluded from the set.",
    )


def _gaps(view: ReportView) -> Table | None:
    return listing(
        "Gap to the upper bound",
        ("Detector", "Bound", "Arm", "Gap", "Band", "Seeds"),
        [
            (
                view.title(row["detector"]),
                row["versus"],
                view.arm_of(row),
                DIFFERENCE.number(row["value"]),
                _band(row),
                f"{row['n_seeds']}",
            )
            for row in view.factor_rows
            if row["kind"] == GAP
        ],
        "AUC of a detector that knows a model without the copies (reference) or shadow "
        "models (lira, rmia), minus that of each detector, on the same rows. The band "
        "covers all differences of one arm.",
    )


def _band(row: Row) -> str:
    if isfinite(row["low"]):
        return f"{DIFFERENCE.number(row['low'])} to {DIFFERENCE.number(row['high'])}"
    return f"none: {row['reason']}"


def sweep_pictures(view: ReportView) -> list[Picture | None]:
    """Return a picture an axis that has several values, all of them numbers."""
    tables = contaminated_cohorts(view.tables)
    axes = dict.fromkeys(key for table in tables for key, _ in table.cohort.axes)
    varied = [axis for axis in axes if len(axis_values(tables, axis)) > 1]
    return [_sweep_picture(view, tables, axis) for axis in varied]


def axis_values(tables: Sequence[Findings], axis: str) -> list[float]:
    """Return an axis's values in order; empty if one of them is not a number."""
    try:
        values = sorted({_value(table, axis) for table in tables})
    except ValueError:
        return []
    # `nan` and `inf` are names as well as floats, and have no place on an axis.
    return values if all(map(isfinite, values)) else []


def _value(table: Findings, axis: str) -> float:
    return float(dict(table.cohort.axes)[axis])


def _sweep_picture(view: ReportView, tables: Sequence[Findings], axis: str) -> Picture | None:
    """Return the AUC of the strongest detectors against an axis, for all members with a copy."""
    values = axis_values(tables, axis)
    logarithmic = values[0] > 0 and values[-1] / values[0] >= _DECADE
    names = view.few(view.shown)
    arms = group_by(
        tables, lambda table: arm_words(pair for pair in table.cohort.axes if pair[0] != axis)
    )

    def row(detector: str, arm: str) -> AxisHeading:
        words = ", ".join(filter(None, (view.title(detector), arm)))
        return view.head(detector, arm)._replace(said=words, name=f"{detector}, {arm}".rstrip(", "))

    def column(value: float) -> AxisHeading:
        label = tokens_label(value) if value >= _LARGE else f"{value:g}"
        return AxisHeading(label, name=f"{value:g}", at=log10(value) if logarithmic else value)

    crossed = cross(
        ((name, arm, table) for arm, own in arms.items() for name in names for table in own),
        lambda item: row(item[0], item[1]),
        lambda item: column(_value(item[2], axis)),
        unit=AUC,
        cell=lambda item: item[2].reported_row(item[0]),
    )
    tokens = ": tokens of the training stream" if short_axis(axis) == "tokens" else ""
    title = f"AUC against {axis}"
    return picture(
        f"sweep-{axis.replace('.', '-')}",
        title,
        "All members with a copy, tuned settings, all datasets pooled. Bands: 95 %. A point: "
        f"{crossed.behind()}. Thin orange: the first panel again.",
        crossed.panels(title, f"{axis}{tokens}", per_row=len(names)),
        1180,
        crossed.records("line", axis),
    )


def dose_response_picture(view: ReportView) -> Picture | None:
    """Return the fitted lines, one panel per arm and detector; None without any."""
    settings, names = view.inputs.analysis_settings, view.few(view.shown)
    study = collect_study(view.inputs.arms, view.inputs.analysis.choices, settings)
    measured = {n: doses.measure_arms(study, n) for n in names if n in study.detectors}
    fitted = [
        (response, response.line)
        for name, arms in measured.items()
        for response in doses.copy_responses(study, arms, name)
        if response.dataset == POOLED and isinstance(response.line, Fit)
    ]
    if not fitted:
        return None
    fitted.sort(key=lambda pair: str(pair[0].cohort))
    dosed = sorted({float(x) for _, line in fitted for x in line.points.x})
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
        x=[(x, doses.short_number(doses.factor_value(doses.COPIES, x))) for x in dosed],
        y=[(at / 4, f"{at / 4:.2f}") for at in range(5)],
        centre=0.5,
        x_label="copies, as log2(1 + copies)",
        label="Curves of AUC against copies: "
        + "; ".join(_describe_reach(view, response) for response, _ in fitted),
        per_row=len(names),
    )
    caption = (
        "Probit of AUC as a line in log2(1 + copies), with its 95 % band; points are the "
        "AUCs of each number of copies with individual intervals. All datasets pooled."
    )
    rows = [row for response, line in fitted for row in _rows(response, line)]
    title = "Dose-response: AUC against copies"
    return picture("dose-response", title, caption, panels, 1180, rows)


def _describe_reach(view: ReportView, response: doses.Response) -> str:
    head = ", ".join(filter(None, (view.title(response.detector), view.words(response.cohort))))
    return f"{head} reaches 0.75 at {doses.shown_reach(response)} copies"


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


def _rows(response: doses.Response, line: Fit) -> Iterator[dict[str, object]]:
    for part, points in (("point", _points(line)), ("curve", _curve(line))):
        members = line.points.members.astype(int).tolist() if part == "point" else []
        for at, (x, dot) in enumerate(points):
            yield {
                "arm": response.cohort.label(),
                "detector": response.detector,
                "part": part,
                "copies": doses.factor_value(doses.COPIES, x),
                "auc": float(dot.value),
                "low": float(dot.low),
                "high": float(dot.high),
                "members": members[at] if members else None,
            }
