"""SURP over its two thresholds, as coloured cells: figure 4 of Zhang and Wu (2024).

Every cell is on the test rows that its setting could score, so a cell is no contestant of the
tables: there all detectors share their rows. A setting that could not score more than the usual
share of the rows stays blank.
"""

from collections.abc import Mapping

import numpy as np

from analysis.arm import Column
from analysis.page.drawing.grid import Grid
from analysis.page.drawing.picture import Picture, picture
from analysis.page.table import with_noun
from analysis.page.view import View
from analysis.selection.tuning import Choice, setting_aucs

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
