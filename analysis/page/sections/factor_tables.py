"""The factors in full: a line an arm and factor, tests, and who is best where."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from analysis.arm import axis_column, axis_names, short_axis
from analysis.arm_words import arm_words
from analysis.factors.comparisons import BEST, GAP
from analysis.factors.findings import CONTRAST, REGRESSION, RESPONSE
from analysis.factors.responses import COPIES, doubled
from analysis.page.parts import Items, Part, Picture, fold, present
from analysis.page.table import Table, listing, p_text
from analysis.page.view import View
from analysis.summary import Names
from analysis.tables import POOLED

Row = Mapping[str, Any]
_MISFIT = 0.05
_OPEN_ROWS = 12
"""A longer table of one factor is folded."""


def factor_tables(view: View, pictures: Mapping[str, Picture]) -> list[Part]:
    """Return what is found about the factors in full; nothing where the study varies nothing."""
    table = view.inputs.analysis.factors
    every = [] if table is None else table.to_pylist()
    axes, names = axis_names(view.inputs.arms), view.names
    order = {name: at for at, name in enumerate(view.order)}
    rows = [row for row in every if row["dataset"] == POOLED]
    if not rows:
        return []
    rows.sort(key=lambda row: order.get(row["detector"], len(order)))
    factors = list(dict.fromkeys(row["factor"] for row in rows if row["kind"] == RESPONSE))
    factors += [name for name in axes if name not in factors and name.split(".")[0] != COPIES]
    factors.sort(key=lambda name: name != COPIES)
    responses = [shown for name in factors if (shown := _responses(rows, axes, name, names))]
    tables = (
        _best(every, axes, names),
        _gaps(rows, axes, names),
        regression_table([row for row in rows if row["kind"] == REGRESSION], names),
        _contrasts(rows, axes, names),
    )
    return present(
        Items(_sentences(rows, axes, factors, view.best.detector)),
        pictures.get("dose-response"),
        [fold(shown) if len(shown.rows) > _OPEN_ROWS else shown for shown in responses],
        [fold(shown) for shown in tables if shown is not None],
    )


def _sentences(
    rows: Sequence[Row], axes: Sequence[str], factors: Sequence[str], best: str
) -> list[str]:
    """Return one sentence a factor, and one of the differences between arms."""
    mine = [row for row in rows if row["detector"] == best]
    found = [_factor_sentence(mine, axes, factor, best) for factor in factors]
    differences = [row for row in mine if row["kind"] == CONTRAST and isfinite(row["low"])]
    if differences:
        found.append(
            f"Of {len(differences)} paired differences between arms under {best}, "
            f"{_told(differences)} distinguishable from zero, corrected for their number."
        )
    return found


def _factor_sentence(mine: Sequence[Row], axes: Sequence[str], factor: str, best: str) -> str:
    """Say in one sentence what all lines of a factor show: how many, the steepest, the pooled."""
    slopes = [row for row in mine if (row["factor"], row["term"]) == (factor, "slope")]
    lines = [row for row in slopes if not row["reason"]]
    if not lines:
        return _without_line(mine, slopes, factor, best)
    if len(lines) == 1:
        (only,) = lines
        where = arm_of(only, axes)
        verdict = "does not show a change of the AUC"
        if _sure(only):
            verdict = f"shows that the AUC {'rises' if only['value'] > 0 else 'falls'}"
        start = f"{where}: under" if where else "Under"
        return (
            f"{start} {best}, the study {verdict} with {noun_of(factor)}: its probit changes by "
            f"{_change(only, mine, axes)} for each doubling of {doubled(factor)}."
        )
    up, down = (sum(_sure(row) and row["value"] * sign > 0 for row in lines) for sign in (1, -1))
    shown = " and ".join(
        f"{verb} in {number}" for verb, number in (("rises", up), ("falls", down)) if number
    )
    counted = f"{shown} of {len(lines)}" if shown else f"shows no change in any of {len(lines)}"
    steepest = max(lines, key=lambda row: abs(row["value"]))
    # What goes over several arms says more than any one of them.
    pooled = [row for row in lines if _pooled(row, axes, factor) and row is not steepest]
    named = "; ".join(
        f"{name} {_change(row, mine, axes)}{f' ({arm_of(row, axes)})' if arm_of(row, axes) else ''}"
        for name, row in (("the steepest", steepest), *(("over arms", row) for row in pooled))
    )
    return (
        f"Under {best}, with {noun_of(factor)} the AUC {counted} lines (each interval for itself); "
        f"its probit changes for each doubling of {doubled(factor)}: {named}."
    )


def _without_line(mine: Sequence[Row], slopes: Sequence[Row], factor: str, best: str) -> str:
    """Say why a factor has no line, and what its paired differences show."""
    reason = slopes[0]["reason"] if slopes else "its values are no positive numbers"
    found = f"Under {best}, {noun_of(factor)}: no line, since {reason}"
    differences = [
        row
        for row in mine
        if row["kind"] == CONTRAST and row["factor"] == factor and isfinite(row["low"])
    ]
    if not differences:
        return f"{found}."
    largest = max(differences, key=lambda row: abs(row["value"]))
    return (
        f"{found}; of {len(differences)} paired differences {_told(differences)} distinguishable "
        f"from zero, the largest {largest['level']} less {largest['versus']}, "
        f"{largest['value']:+.3f} [{largest['low']:+.3f}, {largest['high']:+.3f}]."
    )


def _told(differences: Sequence[Row]) -> str:
    sure = sum(_sure(row) for row in differences)
    return f"{sure} {'is' if sure == 1 else 'are'}"


def _sure(row: Row) -> bool:
    return bool(row["low"] > 0 or row["high"] < 0)


def _pooled(row: Row, axes: Sequence[str], factor: str) -> bool:
    """Say whether a line goes over arms: the axis that they differ in is empty."""
    mine = [axis for axis in axes if axis == factor or axis.split(".")[0] == factor]
    return any(not row[axis_column(axis)] for axis in mine)


def _change(row: Row, mine: Sequence[Row], axes: Sequence[str]) -> str:
    """Return a slope, and where its line reaches AUC 0.75 if it goes up or down at all."""
    shown = f"{row['value']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
    reach = next((r["shown"] for r in mine if r["term"] == "reach" and _same(r, row, axes)), "")
    return f"{shown}, AUC 0.75 at {reach}" if reach and _sure(row) else shown


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


def regression_table(rows: Sequence[Row], names: Names) -> Table | None:
    """Return the regression on all factors at once; None without any."""
    return listing(
        "All factors at once",
        ("Detector", "Factor", "Coefficient", "p", "Members", "Seeds"),
        [
            (
                names.get(row["detector"], row["detector"]),
                noun_of(row["factor"]),
                f"not in it: {row['reason']}"
                if row["reason"]
                else f"{row['value']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]",
                p_text(row["p_value"]),
                f"{row['n_members']:,}" if row["n_members"] else "",
                f"{row['n_seeds']}" if row["n_seeds"] else "",
            )
            for row in rows
        ],
        "Probit regression of each member's placement (share of non-members below it): what one "
        "more doubling of a factor (of 1 + copies, of 1 + tokens since the last copy) does where "
        "the others stay as they are; × is a product, which says whether copies do more at one "
        "end of an axis. Intervals count groups of rows on both sides, and seeds; each holds for "
        "itself.",
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
