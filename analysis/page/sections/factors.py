"""The effect of each factor: paired changes in points of AUC, in words, a picture and a table."""

from collections.abc import Sequence

from analysis.arm import axis_column
from analysis.arm_labels import axis_words
from analysis.factors.contrasts import CONTRAST
from analysis.findings import Row
from analysis.intervals.estimate import Estimate
from analysis.page.crossed import AxisHeading, cross
from analysis.page.drawing.picture import Picture, picture
from analysis.page.parts import Section, answer
from analysis.page.table import Table, TableColumn, numbers
from analysis.page.view import ReportView, capital
from analysis.tables import COPIES_CONTRAST
from analysis.unit import NOTHING, POINTS, Entry

_MAX_CONTRASTS = 4
_TIMES = {2: "Twice", 3: "Three times", 4: "Four times", 5: "Five times", 10: "Ten times"}


def factors_section(view: ReportView) -> Section | None:
    """Return the section: what each swept setting does to every detector, in points of AUC."""
    near = headline_contrasts(view)
    places = [_place(row, view) for row in near]
    other_rows = [row for row in view.changes(CONTRAST) if _place(row, view) not in places]
    contrasts = [*near, *other_rows][:_MAX_CONTRASTS]
    if not contrasts:
        return None
    return answer(
        "factors",
        "Factors",
        "What does each factor do?",
        _sentence(view, contrasts[: len(near) or 1]),
        _picture(view, contrasts),
        _table(view, contrasts),
    )


def headline_contrasts(view: ReportView) -> list[Row]:
    """Return one paired contrast an axis: between the headline's arm and the axis's first value.

    If the headline's arm has the first value, the last one is compared with it.
    """
    own_axes = dict(view.best.table.cohort.axes)
    contrasts: dict[str, Row] = {}
    for row in view.changes(CONTRAST):
        axis = row["factor"]
        others = {axis_column(key): value for key, value in own_axes.items() if key != axis}
        elsewhere = others.items() <= row.items()
        if elsewhere and axis in own_axes and own_axes[axis] in (row["level"], row["versus"]):
            contrasts[axis] = row
    return list(contrasts.values())


def copies_contrast(view: ReportView, level: str, versus: str) -> Row | None:
    """Return the paired contrast of two numbers of copies in the headline's arm; None without."""
    place = {**view.best.table.cohort.columns(), "level": level, "versus": versus}
    rows = (row for row in view.changes(COPIES_CONTRAST) if place.items() <= row.items())
    return next(rows, None)


def change_words(row: Row) -> str:
    """Return a contrast in words: `Five times the learning rate`, or `A instead of B`."""
    axis, level, versus = row["factor"], row["level"], row["versus"]
    after, before = axis_words(axis, level), axis_words(axis, versus)
    noun = after.removesuffix(f" {level}")
    try:
        ratio = float(level) / float(versus)
    except (ValueError, ZeroDivisionError):
        ratio = 0.0
    times = _TIMES.get(round(ratio)) if abs(ratio - round(ratio)) < 1e-6 else None
    if times and noun != after:
        return f"{times} the {noun}"
    return capital(f"{after} instead of {_trim_common(before, after)}")


def _trim_common(words: str, other: str) -> str:
    """Return words without those with which both texts begin; all if nothing else is left."""
    own_words, other_words = words.split(), other.split()
    first_difference = next(
        (at for at, (a, b) in enumerate(zip(own_words, other_words, strict=False)) if a != b), None
    )
    return words if first_difference is None else " ".join(own_words[first_difference:])


def level_cell(view: ReportView, row: Row, level: str) -> Estimate | None:
    """Return the chosen detector's AUC in the arm of a contrast that has a level of its axis."""
    axes = tuple(
        (key, level if key == row["factor"] else row[axis_column(key)])
        for key, _ in view.best.table.cohort.axes
    )
    table = next((arm for arm in view.arms if arm.cohort.axes == axes), None)
    return None if table is None else table.reported(view.best.detector)


def _place(row: Row, view: ReportView) -> tuple[str, ...]:
    axes = (row[axis_column(axis)] for axis in view.axes)
    return (row["factor"], row["level"], row["versus"], *axes)


def _sentence(view: ReportView, contrasts: Sequence[Row]) -> str:
    """Return a sentence on the effect of each change to the headline's arm."""
    clauses = []
    for row in contrasts:
        place = f" ({words})" if (words := view.arm_of(row)) else ""
        clauses.append(f"{change_words(row)} {_describe_effect(row)}{place}")
    return f"{capital('; '.join(clauses))}."


def _describe_effect(row: Row) -> str:
    ends = POINTS.ends(row["low"], row["high"])
    if row["low"] <= 0 <= row["high"]:
        return f"changes the AUC by {POINTS.number(row['value'])} points {ends}, which may be none"
    verb = "adds" if row["value"] > 0 else "takes"
    size = POINTS.number(abs(row["value"])).removeprefix("+")
    return f"{verb} {size} points {ends}"


def _picture(view: ReportView, contrasts: Sequence[Row]) -> Picture | None:
    heads = {
        _place(row, view): AxisHeading(change_words(row), note=view.arm_of(row))
        for row in contrasts
    }
    crossed = cross(
        (row for row in view.factor_rows if row["kind"] == CONTRAST),
        lambda row: view.head(row["detector"]),
        lambda row: (
            heads.get(_place(row, view)) or AxisHeading(change_words(row), group=view.arm_of(row))
        ),
        unit=POINTS,
        cell=lambda row: row,
        displayed=([view.head(name) for name in view.shown], [*heads.values()]),
    )
    return picture(
        "contrasts",
        "Effect of each change",
        "Change of AUC in points (hundredths), paired on the same texts, with simultaneous bands "
        "for all changes of a detector.",
        crossed.matrix(),
        1180 if len(contrasts) > 2 else 560,
        crossed.records("detector", "contrast"),
    )


def _table(view: ReportView, contrasts: Sequence[Row]) -> Table:
    return Table(
        title=f"What was changed, for {view.name}",
        columns=(TableColumn("Change"), *numbers("AUC", "Points", "n members", "Seeds")),
        rows=tuple(
            (
                Entry(change_words(row), notes=(arm,) if (arm := view.arm_of(row)) else ()),
                _format_change(view, row),
                POINTS.entry(row),
                f"{row['n_members']:,}",
                f"{row['n_seeds']}",
            )
            for row in contrasts
        ),
        caption="Paired on the same texts; each arm with its own tuned setting. Bold: "
        "the band excludes 0.",
    )


def _format_change(view: ReportView, row: Row) -> str:
    before, after = (level_cell(view, row, row[key]) for key in ("versus", "level"))
    return f"{before.value:.2f} → {after.value:.2f}" if before and after else NOTHING
