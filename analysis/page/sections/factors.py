"""What each factor does: paired changes in points of AUC, and the lines and tests behind them."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from analysis.arm import axis_column, axis_names, short_axis
from analysis.arm_words import arm_words
from analysis.factors.comparisons import BEST, GAP
from analysis.factors.findings import CONTRAST, REGRESSION, RESPONSE
from analysis.factors.responses import COPIES, doubled
from analysis.page.contrasts import change_words, headline_contrasts, level_cell
from analysis.page.drawing.marks import Dot, round_limits
from analysis.page.drawing.matrix import Matrix, MatrixAxis, MatrixColumn, draw_matrix
from analysis.page.parts import Columns, Fold, Items, Note, Part, Picture, fold, present
from analysis.page.table import NOTHING, Column, Entry, Table, listing, numbers, p_text
from analysis.page.view import View, capital, points, points_interval
from analysis.summary import Names
from analysis.tables import POOLED

_MAX_CONTRASTS = 4
Row = Mapping[str, Any]
_MISFIT = 0.05
_OPEN_ROWS = 12
"""A longer table of one factor is folded."""


def factors_parts(view: View) -> list[Part]:
    """Return the section: what each swept setting does to every detector, in points of AUC."""
    contrasts = shown_contrasts(view)
    regression = _regression(view)
    if not contrasts and regression is None:
        return []
    return present(
        Note(_sentence(view, contrasts), "say"),
        Columns(present(_picture(view, contrasts), _table(view, contrasts)), "answer")
        if contrasts
        else None,
        Fold("All factors at once", [regression]) if regression else None,
    )


def shown_contrasts(view: View) -> list[Row]:
    """Return the paired contrasts that are shown: those of the headline's arm first."""
    near = headline_contrasts(view)
    known = [_place(row, view) for row in near]
    table = view.inputs.analysis.factors
    every = [] if table is None else table.to_pylist()
    rest = [
        row
        for row in every
        if (row["kind"], row["dataset"], row["detector"]) == (CONTRAST, POOLED, view.best.detector)
        and isfinite(row["low"])
        and _place(row, view) not in known
    ]
    return [*near, *rest][:_MAX_CONTRASTS]


def _sentence(view: View, contrasts: Sequence[Row]) -> str:
    """Say what each change of the headline's arm does, and which factors show nothing."""
    said = [
        f"{change_words(row)} {_does(row)}{_beside(view, row)}"
        for row in contrasts[: len(headline_contrasts(view)) or 1]
    ]
    mine = [row for row in _rows(view, REGRESSION) if row["detector"] == view.best.detector]
    swept = {row["factor"] for row in contrasts}
    none = [
        _noun(row["factor"])
        for row in mine
        if not row["reason"] and row["low"] <= 0 <= row["high"] and row["factor"] not in swept
    ]
    if none:
        said.append(f"beside that, no change is shown with {' or '.join(none)}")
    if not said:
        return f"What each factor does to the AUC of {view.name}, all of them at once."
    return f"{capital('; '.join(said))}."


def _does(row: Row) -> str:
    ends = points_interval(row["low"], row["high"])
    if row["low"] <= 0 <= row["high"]:
        return f"is not shown to change the AUC ({points(row['value'])} points {ends})"
    verb = "adds" if row["value"] > 0 else "takes"
    size = points(abs(row["value"])).removeprefix("+")
    return f"{verb} {size} points {ends}"


def _beside(view: View, row: Row) -> str:
    words = _arm(row, axis_names(view.inputs.arms))
    return f" ({words})" if words else ""


def _picture(view: View, contrasts: Sequence[Row]) -> Picture | None:
    names = view.shown
    found = {
        (row["detector"], *_place(row, view)): row
        for row in _rows(view, CONTRAST)
        if isfinite(row["low"])
    }
    columns = []
    for contrast in contrasts:
        rows = [found.get((name, *_place(contrast, view))) for name in names]
        dots = [None if row is None else _dot(view, row) for row in rows]
        head = change_words(contrast)
        columns.append(MatrixColumn(head, dots, note=_arm(contrast, axis_names(view.inputs.arms))))
    drawn = [dot for column in columns for dot in column.dots if isinstance(dot, Dot)]
    if not drawn:
        return None
    low, high = round_limits([end for dot in drawn for end in (dot.low, dot.high)], 10, 0)
    step = 10 if high - low <= 50 else 20
    ticks = [(float(at), f"{at:+d}".replace("-", "−") if at else "0")
             for at in range(round(low), round(high) + 1) if at % step == 0]  # fmt: skip
    matrix = Matrix(
        rows=view.rows(names),
        columns=columns,
        axis=MatrixAxis(low, high, 0.0, ticks),
        label="Change of AUC in points; " + "; ".join(dot.hover for dot in drawn[: len(names)]),
        row_height=20.0,
    )
    caption = "Change of AUC in points (hundredths), paired on the same texts, with bands that "
    caption += "hold for all changes of a detector at once."
    return view.picture("contrasts", "What each change does", caption, draw_matrix(matrix, 560))


def _place(row: Row, view: View) -> tuple[str, ...]:
    axes = axis_names(view.inputs.arms)
    return (row["factor"], row["level"], row["versus"], *(row[axis_column(a)] for a in axes))


def _dot(view: View, row: Row) -> Dot:
    ends = points_interval(row["low"], row["high"])
    hover = f"{view.title(row['detector'])}, {change_words(row)}: {points(row['value'])} points "
    hover += f"{ends} · {row['n_members']:,} members"
    value, low, high = (100 * row[name] for name in ("value", "low", "high"))
    return Dot(value, low, high, hover, points(row["value"]))


def _table(view: View, contrasts: Sequence[Row]) -> Table:
    axes = axis_names(view.inputs.arms)
    rows = []
    for row in contrasts:
        before, after = (level_cell(view, row, row[key]) for key in ("versus", "level"))
        moved = f"{before.value:.2f} → {after.value:.2f}" if before and after else NOTHING
        ends = points_interval(row["low"], row["high"])
        sure = not row["low"] <= 0 <= row["high"]
        rows.append(
            (
                Entry(change_words(row), notes=(where,) if (where := _arm(row, axes)) else ()),
                moved,
                Entry(points(row["value"]), ends=ends, kind="difference", strong=sure),
                f"{row['n_members']:,}",
                f"{row['n_seeds']}",
            )
        )
    return Table(
        title=f"What was changed, for {view.name}",
        columns=(Column("Change"), *numbers("AUC", "Points", "n members", "Seeds")),
        rows=tuple(rows),
        caption="Paired on the same texts; each arm with its own tuned setting. Bold: the band "
        "leaves out 0.",
    )


def _rows(view: View, kind: str) -> list[Row]:
    """Return the pooled findings of a kind, detectors in the order of the page."""
    table = view.inputs.analysis.factors
    order = {name: at for at, name in enumerate(view.order)}
    rows = [] if table is None else table.to_pylist()
    kept = [row for row in rows if row["dataset"] == POOLED and row["kind"] == kind]
    return sorted(kept, key=lambda row: order.get(row["detector"], len(order)))


def _regression(view: View) -> Table | None:
    mine = [row for row in _rows(view, REGRESSION) if row["detector"] == view.best.detector]
    return _regression_table(mine, view.names)


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
        _regression_table([row for row in rows if row["kind"] == REGRESSION], names),
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
        where = _arm(only, axes)
        verdict = "does not show a change of the AUC"
        if _sure(only):
            verdict = f"shows that the AUC {'rises' if only['value'] > 0 else 'falls'}"
        start = f"{where}: under" if where else "Under"
        return (
            f"{start} {best}, the study {verdict} with {_noun(factor)}: its probit changes by "
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
        f"{name} {_change(row, mine, axes)}{f' ({_arm(row, axes)})' if _arm(row, axes) else ''}"
        for name, row in (("the steepest", steepest), *(("over arms", row) for row in pooled))
    )
    return (
        f"Under {best}, with {_noun(factor)} the AUC {counted} lines (each interval for itself); "
        f"its probit changes for each doubling of {doubled(factor)}: {named}."
    )


def _without_line(mine: Sequence[Row], slopes: Sequence[Row], factor: str, best: str) -> str:
    """Say why a factor has no line, and what its paired differences show."""
    reason = slopes[0]["reason"] if slopes else "its values are no positive numbers"
    found = f"Under {best}, {_noun(factor)}: no line, since {reason}"
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
                _arm(row, axes),
                f"{row['value']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]",
                p_text(row["p_value"]),
                rest["reach"]["shown"],
                "no line" if misfit < _MISFIT else "",
                f"{row['n_members']:,}",
                f"{row['n_seeds']}",
            )
        )
    return listing(
        f"Response to {_noun(factor)}",
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
                _arm(row, axes),
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


def _regression_table(rows: Sequence[Row], names: Names) -> Table | None:
    return listing(
        "All factors at once",
        ("Detector", "Factor", "Coefficient", "p", "Members", "Seeds"),
        [
            (
                names.get(row["detector"], row["detector"]),
                _noun(row["factor"]),
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
            places.setdefault((_arm(row, axes), row["dataset"]), []).append(row)
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
                _arm(row, axes),
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


def _arm(row: Row, axes: Sequence[str]) -> str:
    return arm_words((axis, row[axis_column(axis)]) for axis in axes)


def _noun(factor: str) -> str:
    return "the length of the text" if factor == "length" else factor
