"""What each factor does: paired changes in points of AUC, and the lines and tests behind them."""

from collections.abc import Sequence
from dataclasses import replace

from analysis.arm import axis_column, axis_names
from analysis.factors.contrasts import CONTRAST
from analysis.findings import Row
from analysis.page.contrasts import change_words, headline_contrasts, level_cell
from analysis.page.crossed import Head, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Columns, Note, Part, present
from analysis.page.sections.factor_tables import arm_of
from analysis.page.table import Column, Table, numbers
from analysis.page.view import View, capital
from analysis.unit import NOTHING, POINTS, Entry

_MAX_CONTRASTS = 4


def factors_parts(view: View) -> list[Part]:
    """Return the section: what each swept setting does to every detector, in points of AUC."""
    contrasts = shown_contrasts(view)
    if not contrasts:
        return []
    wide = len(contrasts) > 2
    shown = present(_picture(view, contrasts, 1180 if wide else 560), _table(view, contrasts))
    # Below each other where the picture has many columns.
    below = shown if wide else [Columns(shown, "answer")]
    return [Note(_sentence(view, contrasts), "say"), *below]


def shown_contrasts(view: View) -> list[Row]:
    """Return the paired contrasts that are shown: those of the headline's arm first."""
    near = headline_contrasts(view)
    known = [_place(row, view) for row in near]
    rest = [row for row in view.changes(CONTRAST) if _place(row, view) not in known]
    return [*near, *rest][:_MAX_CONTRASTS]


def _sentence(view: View, contrasts: Sequence[Row]) -> str:
    """Say what each change of the headline's arm does."""
    said = [
        f"{change_words(row)} {_does(row)}{_beside(view, row)}"
        for row in contrasts[: len(headline_contrasts(view)) or 1]
    ]
    return f"{capital('; '.join(said))}."


def _does(row: Row) -> str:
    ends = POINTS.ends(row["low"], row["high"])
    if row["low"] <= 0 <= row["high"]:
        return f"changes the AUC by {POINTS.number(row['value'])} points {ends}, which may be none"
    verb = "adds" if row["value"] > 0 else "takes"
    size = POINTS.number(abs(row["value"])).removeprefix("+")
    return f"{verb} {size} points {ends}"


def _beside(view: View, row: Row) -> str:
    words = arm_of(row, axis_names(view.inputs.arms))
    return f" ({words})" if words else ""


def _picture(view: View, contrasts: Sequence[Row], width: float) -> Picture | None:
    axes = axis_names(view.inputs.arms)
    columns = {
        _place(row, view): Head(change_words(row), note=arm_of(row, axes)) for row in contrasts
    }
    every = cross(
        (row for row in view.factor_rows if row["kind"] == CONTRAST),
        lambda row: view.head(row["detector"]),
        lambda row: (
            columns.get(_place(row, view)) or Head(change_words(row), group=arm_of(row, axes))
        ),
        unit=POINTS,
        cell=lambda row: row,
    )
    shown = replace(
        every, rows=[view.head(name) for name in view.shown], columns=[*columns.values()]
    )
    if (matrix := shown.matrix()) is None:
        return None
    caption = "Change of AUC in points (hundredths), paired on the same texts, with bands that "
    caption += "hold for all changes of a detector at once."
    records = every.records("detector", "contrast")
    return picture("contrasts", "What each change does", caption, matrix, width, records)


def _place(row: Row, view: View) -> tuple[str, ...]:
    axes = axis_names(view.inputs.arms)
    return (row["factor"], row["level"], row["versus"], *(row[axis_column(a)] for a in axes))


def _table(view: View, contrasts: Sequence[Row]) -> Table:
    axes = axis_names(view.inputs.arms)
    rows = []
    for row in contrasts:
        before, after = (level_cell(view, row, row[key]) for key in ("versus", "level"))
        moved = f"{before.value:.2f} → {after.value:.2f}" if before and after else NOTHING
        rows.append(
            (
                Entry(change_words(row), notes=(where,) if (where := arm_of(row, axes)) else ()),
                moved,
                POINTS.entry(row),
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
