"""SURP's AUC over its two thresholds, as a heat map (Zhang and Wu 2024, figure 4).

Every cell is on the test rows that its setting could score, so a cell is no contestant of the
tables: there all detectors share their rows. A setting that could not score more than the usual
share of the rows stays blank.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import Column
from analysis.figures.cohort_scores import CohortData
from analysis.figures.heat_maps.auc_grid import auc_reach, draw_cells
from analysis.figures.style import (
    INK,
    ReportFigure,
    house_style,
    new_figure,
    save_figure,
)
from analysis.metrics import Floats
from analysis.results import Analysis
from analysis.selection.tuning import Choice, setting_aucs
from analysis.settings import AnalysisSettings

DETECTOR = "surp"
ENTROPY, PERCENT = "entropy", "k"


class _Grid(NamedTuple):
    """AUCs over the two thresholds."""

    entropies: list[float]
    percents: list[float]
    values: Floats
    """[percents, entropies]; NaN where there is none."""


def draw_surp_grid(
    folder: Path, data: CohortData, analysis: Analysis, settings: AnalysisSettings
) -> ReportFigure | None:
    """Draw the grid of one cohort; None where SURP did not run with one."""
    holding = [arm for arm in data.loaded if DETECTOR in arm.detectors]
    if not holding or not any(choice.detector == DETECTOR for choice in _choices(analysis, data)):
        return None
    columns = {
        column: thresholds
        for column in holding[0].grid(DETECTOR)
        if (thresholds := _thresholds(column.setting))
        and all(column in arm.index for arm in holding)
    }
    grid = _grid(
        columns,
        setting_aucs(holding, list(columns), split="test", max_unscored=settings.max_unscored),
    )
    if min(len(grid.entropies), len(grid.percents)) < 2 or np.isnan(grid.values).all():
        return None
    choice = next(one for one in _choices(analysis, data) if one.detector == DETECTOR)
    with house_style():
        figure = new_figure(1.3 + 0.32 * len(grid.percents))
        axis = figure.subplots()
        image = _draw(axis, grid)
        marked = _marked(choice, columns)
        for label, place in marked.items():
            _outline(axis, grid, place, dashed=label == "default")
        bar = figure.colorbar(image, ax=axis, pad=0.015, aspect=30)
        bar.set_label("AUC on the test split")
        bar.outline.set_visible(False)
        members = sum(int((arm.test & arm.member & (arm.copies > 0)).sum()) for arm in holding)
        others = sum(int((arm.test & ~arm.member).sum()) for arm in holding)
        seeds = "one training seed" if len(holding) == 1 else f"{len(holding)} training seeds"
        return save_figure(
            figure,
            folder,
            name="surp-grid",
            title="SURP over its two thresholds",
            caption=(
                "AUC of surp on the test split for every entropy threshold ε and percentile k"
                f"{_of(data)}, over the rows that each setting could score: of {members:,} members "
                f"with at least one copy and {others:,} non-members, {seeds}. "
                f"{_about_marks(grid, marked, choice)} Blank: no score for more than "
                f"{settings.max_unscored:.0%} of the rows. The highest cell of this figure was "
                "not chosen by anything and is optimistic."
            ),
            alternative=_in_words(grid, marked),
            data=[
                {"entropy": entropy, "k": percent, "auc": float(grid.values[row, column])}
                for row, percent in enumerate(grid.percents)
                for column, entropy in enumerate(grid.entropies)
            ],
        )


def _choices(analysis: Analysis, data: CohortData) -> Sequence[Choice]:
    return next(found.choices for found in analysis.choices if found.cohort == data.cohort)


def _thresholds(setting: str) -> tuple[float, float] | None:
    """Return ε and k of a setting that differs from the default in nothing else."""
    parts = dict(part.partition("=")[::2] for part in setting.split(":"))
    if parts.keys() != {ENTROPY, PERCENT}:
        return None
    return float(parts[ENTROPY]), float(parts[PERCENT])


def _grid(columns: Mapping[Column, tuple[float, float]], values: Floats) -> _Grid:
    entropies = sorted({entropy for entropy, _ in columns.values()})
    percents = sorted({percent for _, percent in columns.values()})
    found = np.full((len(percents), len(entropies)), np.nan)
    for (entropy, percent), value in zip(columns.values(), values, strict=True):
        found[percents.index(percent), entropies.index(entropy)] = value
    return _Grid(entropies, percents, found)


def _draw(axis: Any, grid: _Grid) -> Any:
    # White is chance, and both sides have one scale.
    image = draw_cells(axis, grid.values, auc_reach(grid.values), size=7)
    axis.set_xticks(range(len(grid.entropies)), [f"{value:g}" for value in grid.entropies])
    axis.set_yticks(range(len(grid.percents)), [f"{value:g}" for value in grid.percents])
    axis.set_xlabel("entropy threshold ε (nats)")
    axis.set_ylabel("percentile k")
    return image


def _marked(
    choice: Choice, columns: Mapping[Column, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Return the thresholds of the chosen and of the default setting, where they are drawn."""
    named = {"chosen": choice.tuned, "default": choice.default}
    by_setting = {column.setting: place for column, place in columns.items()}
    return {
        label: by_setting[setting]
        for label, setting in named.items()
        if setting is not None and setting in by_setting
    }


def _outline(axis: Any, grid: _Grid, place: tuple[float, float], *, dashed: bool) -> None:
    from matplotlib.patches import Rectangle

    entropy, percent = place
    corner = (grid.entropies.index(entropy) - 0.5, grid.percents.index(percent) - 0.5)
    axis.add_patch(
        Rectangle(
            corner,
            1,
            1,
            fill=False,
            edgecolor=INK,
            linewidth=1.4 if dashed else 2.2,
            linestyle=(0, (2, 1.5)) if dashed else "-",
            zorder=3 if dashed else 4,
            clip_on=False,
        )
    )


def _at(grid: _Grid, place: tuple[float, float]) -> str:
    value = grid.values[grid.percents.index(place[1]), grid.entropies.index(place[0])]
    shown = "no AUC" if np.isnan(value) else f"AUC {value:.2f}"
    return f"ε = {place[0]:g}, k = {place[1]:g} ({shown})"


def _about_marks(grid: _Grid, marked: Mapping[str, tuple[float, float]], choice: Choice) -> str:
    parts = []
    if "chosen" in marked:
        parts.append(f"Framed: chosen on the tune split, {_at(grid, marked['chosen'])}.")
    elif choice.tuned is None:
        parts.append("The tune split supports no choice.")
    if "default" in marked:
        parts.append(f"Dashed: the paper's default, {_at(grid, marked['default'])}.")
    return " ".join(parts)


def _of(data: CohortData) -> str:
    return f" ({data.cohort.label()})" if data.cohort.label() else ""


def _in_words(grid: _Grid, marked: Mapping[str, tuple[float, float]]) -> str:
    there = np.isfinite(grid.values)
    ends = {
        word: np.unravel_index(find(np.where(there, grid.values, fill)), grid.values.shape)
        for word, find, fill in (("highest", np.argmax, -np.inf), ("lowest", np.argmin, np.inf))
    }
    parts = [
        f"{word} at {_at(grid, (grid.entropies[int(at[1])], grid.percents[int(at[0])]))}"
        for word, at in ends.items()
    ]
    parts += [f"{word} {_at(grid, place)}" for word, place in marked.items()]
    return (
        f"Heat map of the AUC of surp, {len(grid.entropies)} entropy thresholds by "
        f"{len(grid.percents)} percentiles: {'; '.join(parts)}."
    )
