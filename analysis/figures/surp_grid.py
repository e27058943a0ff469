"""SURP over its two thresholds, as coloured cells: figure 4 of Zhang and Wu (2024).

Every cell is on the test rows that its setting could score, so a cell is no contestant of the
tables: there all detectors share their rows. A setting that could not score more than the usual
share of the rows stays blank.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.arm import Column
from analysis.figures.captions import (
    seeds_text,
)
from analysis.figures.cohort import CohortData
from analysis.figures.panel import Axis, Cells, Figure, Panel
from analysis.selection.tuning import Choice, setting_aucs
from analysis.settings import AnalysisSettings

MAX_COLUMNS = 12
"""Numbers in more columns are too small to be read."""
_SURP = "surp"
_Place = tuple[float, float]
"""Entropy threshold and percentile."""


def surp_grid_figure(
    data: CohortData, choices: Sequence[Choice], settings: AnalysisSettings
) -> Figure | None:
    """Return SURP's grid of one cohort; None where SURP did not run with one."""
    holding = [arm for arm in data.loaded if _SURP in arm.detectors]
    choice = next((one for one in choices if one.detector == _SURP), None)
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
    values = np.array([[grid.get((e, k), np.nan) for e in entropies] for k in percents])
    if min(len(entropies), len(percents)) < 2 or np.isnan(values).all():
        return None
    marked = _marked(choice, places)
    members = sum(int((arm.test & arm.member & (arm.copies > 0)).sum()) for arm in holding)
    others = sum(int((arm.test & ~arm.member).sum()) for arm in holding)
    where = f" ({data.cohort.label()})" if data.cohort.label() else ""
    return Figure(
        name="surp-grid",
        title="SURP over its two thresholds",
        caption=f"AUC of surp on the test split for every entropy threshold ε and percentile k"
        f"{where}, over the rows that each setting could score: of {members:,} members with at "
        f"least one copy and {others:,} non-members, {seeds_text([len(holding)])} "
        f"{_marks_text(grid, marked, choice)} Blank: no score for more than "
        f"{settings.max_unscored:.0%} of the rows. The highest cell of this figure was not chosen "
        "by anything and is optimistic.",
        alternative=f"Heat map of the AUC of surp, {len(entropies)} entropy thresholds by "
        f"{len(percents)} percentiles: {_extremes(grid)}"
        + "".join(f"; {word} {_place_text(grid, place)}" for word, place in marked.items())
        + ".",
        panels=[
            Panel(
                cells=Cells(
                    values=values,
                    meaning="AUC on the test split",
                    frames={
                        (percents.index(place[1]), entropies.index(place[0])):
                            "dotted" if word == "default" else "solid"
                        for word, place in reversed(marked.items())
                    },
                ),
                x=Axis(label="entropy threshold ε (nats)", names=[f"{e:g}" for e in entropies]),
                y=Axis(label="percentile k", names=[f"{k:g}" for k in percents]),
            )
        ],
        rows=[
            {"entropy": entropy, "k": percent, "auc": grid.get((entropy, percent), np.nan)}
            for percent in reversed(percents)
            for entropy in entropies
        ],
        height=1.3 + 0.32 * len(percents),
    )  # fmt: skip


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
