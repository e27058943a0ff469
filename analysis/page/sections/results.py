"""The results in full, on a page of their own, besides the table of every AUC.

AUC against each swept axis of numbers is a panel an arm and detector. SURP over its two thresholds
is drawn as coloured cells: figure 4 of Zhang and Wu (2024). Every cell is on the test rows that its
setting could score, so a cell is no contestant of the tables: there all detectors share their rows.
A setting that could not score more than the usual share of the rows stays blank.
"""

from collections.abc import Mapping, Sequence
from math import isfinite, log10

import numpy as np

from analysis.arm import Column, short_axis
from analysis.arm_words import arm_words
from analysis.findings import Findings, contaminated_cohorts
from analysis.page.crossed import Head, cross
from analysis.page.drawing.grid import Grid
from analysis.page.drawing.picture import Picture, picture
from analysis.page.grids import adjusted_tables, folded
from analysis.page.parts import Part, Section, present
from analysis.page.sections.factor_tables import factor_tables
from analysis.page.table import Table, listing, tokens_label, with_noun
from analysis.page.view import View
from analysis.results import Analysis
from analysis.selection.tuning import Choice, setting_aucs
from analysis.summary import Names
from analysis.unit import AUC


def results_sections(view: View) -> list[Section]:
    """Return what else is known of the results; sections without parts have nothing to show."""
    seen = contaminated_cohorts(view.tables)
    adjusted = folded(adjusted_tables(seen, view.order, view.names))
    choices = _choices(view.inputs.analysis, view.names)
    factors = [*sweep_pictures(view), *factor_tables(view)]
    titled = (
        ("adjusted", "Adjusted by the base model", adjusted),
        ("settings", "Chosen settings", present(choices, surp_picture(view))),
        ("factors-in-full", "Factors in full", factors),
    )
    return [Section(anchor, title, title, parts) for anchor, title, parts in titled]


def _choices(analysis: Analysis, names: Names) -> Table | None:
    """Return one row a choice; a detector whose only setting is its default had none to make."""
    return listing(
        "Chosen settings",
        ("Detector", "Model", "Default", "Tuned", "Tune AUC"),
        [
            (
                names.get(choice.detector, choice.detector),
                " · ".join(x for x in (made.cohort.model, arm_words(made.cohort.axes)) if x),
                choice.default,
                "no tune rows" if choice.tuned is None else choice.tuned,
                AUC.number(choice.tune_auc),
            )
            for made in analysis.choices
            for choice in made.choices
            if choice.default not in ("default", "-") or choice.tuned != choice.default
        ],
        "The choice was made by the tune AUC, which is therefore optimistic. Detectors without "
        "settings are left out.",
    )


_DECADE = 10 * (1 - 1e-9)
"""An axis that spans this ratio or a larger one is drawn by logarithms; 3e-4 / 3e-5 is a bit less
than ten in floats."""
_LARGE = 10_000
"""Whole numbers from here on are written as `300k`."""


def sweep_pictures(view: View) -> list[Part]:
    """Return a picture an axis that has several values, all of them numbers."""
    tables = contaminated_cohorts(view.tables)
    axes = dict.fromkeys(key for table in tables for key, _ in table.cohort.axes)
    drawn = (
        sweep_picture(view, tables, axis) for axis in axes if len(axis_values(tables, axis)) > 1
    )
    return present(*drawn)


def axis_values(tables: Sequence[Findings], axis: str) -> list[float]:
    """Return an axis's values in order; none where one of them is not a number."""
    try:
        values = sorted({float(dict(table.cohort.axes)[axis]) for table in tables})
    except ValueError:
        return []
    # `nan` and `inf` are names as well as floats, and have no place on an axis.
    return values if all(map(isfinite, values)) else []


def sweep_picture(view: View, tables: Sequence[Findings], axis: str) -> Picture | None:
    """Return the AUC of the strongest detectors against an axis, for all members with a copy."""
    values = axis_values(tables, axis)
    logarithmic = values[0] > 0 and values[-1] / values[0] >= _DECADE
    arms = dict.fromkeys(_others(table, axis) for table in tables)
    names = view.few(view.shown)

    def row(detector: str, table: Findings) -> Head:
        arm = arm_words(_others(table, axis))
        said = ", ".join(filter(None, (view.title(detector), arm)))
        return view.head(detector, arm)._replace(said=said, name=f"{detector}, {arm}".rstrip(", "))

    def column(table: Findings) -> Head:
        value = float(dict(table.cohort.axes)[axis])
        label = tokens_label(value) if value >= _LARGE else f"{value:g}"
        return Head(label, name=f"{value:g}", at=log10(value) if logarithmic else value)

    crossed = cross(
        ((name, table) for arm in arms for name in names for table in tables
         if _others(table, axis) == arm),
        lambda item: row(*item),
        lambda item: column(item[1]),
        unit=AUC,
        cell=lambda item: item[1].reported_row(item[0]),
    )  # fmt: skip
    tokens = ": tokens of the training stream" if short_axis(axis) == "tokens" else ""
    title = f"AUC against {axis}"
    panels = crossed.panels(title, f"{axis}{tokens}", per_row=len(names))
    if panels is None:
        return None
    caption = "All members with a copy, tuned settings, all datasets pooled. Bands: 95 %. "
    caption += f"A point: {crossed.behind()}. Thin orange: the first panel again."
    name, records = f"sweep-{axis.replace('.', '-')}", crossed.records("line", axis)
    return picture(name, title, caption, panels, 1180, records)


def _others(table: Findings, axis: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in table.cohort.axes if pair[0] != axis)


_SURP = "surp"
_Place = tuple[float, float]
"""Entropy threshold and percentile."""


def surp_picture(view: View) -> Picture | None:
    """Return SURP's grid in the headline's arm; None if SURP ran without one."""
    data, settings = view.data, view.inputs.analysis_settings
    holding = [arm for arm in data.loaded if _SURP in arm.detectors]
    choice = next((one for one in data.choices if one.detector == _SURP), None)
    if not holding or choice is None:
        return None
    places = {
        column: place
        for column in holding[0].grid(_SURP)
        if (place := _thresholds(column.setting)) and all(column in arm.index for arm in holding)
    }
    entropies = sorted({entropy for entropy, _ in places.values()})
    percents = sorted({percent for _, percent in places.values()}, reverse=True)
    aucs = setting_aucs(holding, list(places), split="test", max_unscored=settings.max_unscored)
    grid = dict(zip(places.values(), aucs.tolist(), strict=True))
    if min(len(entropies), len(percents)) < 2 or not np.isfinite(aucs).any():
        return None
    marked = _marked(choice, places)
    members = sum(int((arm.test & arm.member & (arm.copies > 0)).sum()) for arm in holding)
    others = sum(int((arm.test & ~arm.member).sum()) for arm in holding)
    shown = Grid(
        rows=[f"{percent:g}" for percent in percents],
        columns=[f"{entropy:g}" for entropy in entropies],
        cells={(f"{k:g}", f"{e:g}"): auc for (e, k), auc in grid.items()},
        frames={
            (f"{k:g}", f"{e:g}"): "fr da" if word == "default" else "fr"
            for word, (e, k) in reversed(marked.items())
        },
        row_label="percentile k",
        column_label="entropy threshold ε (nats)",
        label=f"Heat map of the AUC of surp, {len(entropies)} entropy thresholds by "
        f"{len(percents)} percentiles: {_extremes(grid)}"
        + "".join(f"; {word} {_place_text(grid, place)}" for word, place in marked.items()),
    )
    caption = (
        "AUC on the test split for every entropy threshold ε and percentile k"
        f"{f', {view.arm}' if view.arm else ''}, over the rows that each setting could score: of "
        f"{members:,} members with at least one copy and {others:,} non-members, "
        f"{with_noun(len(holding), 'training seed')}. {_marks_text(grid, marked, choice)} Grey: "
        "above 0.5, blue: below. Blank: no score for more than "
        f"{settings.max_unscored:.0%} of the rows. The highest cell was not chosen by anything and "
        "is optimistic."
    )
    rows = [
        {"entropy": entropy, "k": percent, "auc": grid.get((entropy, percent), np.nan)}
        for percent in reversed(percents)
        for entropy in entropies
    ]
    width = min(1180.0, max(320.0, 40 + 46.0 * len(entropies)))
    return picture("surp-grid", "SURP over its two thresholds", caption, shown, width, rows)


def _thresholds(setting: str) -> _Place | None:
    """Return ε and k of a setting that differs from the default in nothing else."""
    parts = dict(part.partition("=")[::2] for part in setting.split(":"))
    return (
        (float(parts["entropy"]), float(parts["k"])) if parts.keys() == {"entropy", "k"} else None
    )


def _marked(choice: Choice, places: Mapping[Column, _Place]) -> dict[str, _Place]:
    """Return the thresholds of the chosen and of the default setting, where they are drawn."""
    by_setting = {column.setting: place for column, place in places.items()}
    named = {"chosen": choice.tuned, "default": choice.default}
    return {
        word: by_setting[setting]
        for word, setting in named.items()
        if setting is not None and setting in by_setting
    }


def _place_text(grid: Mapping[_Place, float], place: _Place) -> str:
    value = grid.get(place, np.nan)
    shown = "no AUC" if np.isnan(value) else f"AUC {value:.2f}"
    return f"ε = {place[0]:g}, k = {place[1]:g} ({shown})"


def _marks_text(grid: Mapping[_Place, float], marked: Mapping[str, _Place], choice: Choice) -> str:
    parts = []
    if "chosen" in marked:
        parts.append(f"Framed: chosen on the tune split, {_place_text(grid, marked['chosen'])}.")
    elif choice.tuned is None:
        parts.append("The tune split supports no choice.")
    if "default" in marked:
        parts.append(f"Dashed: the paper's default, {_place_text(grid, marked['default'])}.")
    return " ".join(parts)


def _extremes(grid: Mapping[_Place, float]) -> str:
    """Say where the AUC is highest and lowest; of equal ones at the lowest thresholds."""
    known = sorted((place for place in grid if np.isfinite(grid[place])), key=lambda at: at[::-1])
    highest, lowest = max(known, key=grid.__getitem__), min(known, key=grid.__getitem__)
    return f"highest at {_place_text(grid, highest)}; lowest at {_place_text(grid, lowest)}"
