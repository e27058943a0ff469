"""Distributions of one detector's scores: non-members, and members by their copies."""

from pathlib import Path

import numpy as np

from analysis.copy_bins import copies_cells, is_dose
from analysis.figures.cohort_scores import CohortData, cohort_rows
from analysis.figures.style import (
    INK,
    MUTED,
    ReportFigure,
    dose_colours,
    house_style,
    new_figure,
    save_figure,
)
from analysis.metrics import Floats
from analysis.settings import AnalysisSettings

_LIMITS = (0.005, 0.995)


def draw_scores(
    folder: Path, data: CohortData, detector: str, selection: str, settings: AnalysisSettings
) -> ReportFigure | None:
    """Draw one ridge a group, its median marked; None where there is nothing to show."""
    column = data.column(detector, selection)
    rows = cohort_rows(data, column, settings)
    if len(rows.nonmembers) < 2 or len(rows.members) < 2:
        return None
    groups: list[tuple[str, Floats, str]] = [("non-members", rows.nonmembers, MUTED)]
    cells = [
        cell
        for cell in copies_cells(rows.copies.tolist(), high_copies=settings.high_copies)
        if is_dose(cell.label)
    ]
    for cell, shade in zip(cells, dose_colours(len(cells)), strict=True):
        values = rows.members[cell.holds(rows.copies)]
        if len(values) >= settings.min_members:
            one = cell.label == "1"
            groups.append((f"{cell.label} {'copy' if one else 'copies'}", values, shade))
    everything = np.concatenate([rows.nonmembers, rows.members])
    low, high = np.quantile(everything, _LIMITS)
    margin = 0.12 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 400)
    middle = float(np.median(rows.nonmembers))
    with house_style():
        figure = new_figure(0.9 + 0.66 * len(groups))
        axis = figure.subplots()
        axis.axvline(middle, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
        for at, (_name, values, shade) in enumerate(groups):
            base = len(groups) - 1 - at
            ridge = _density(values, grid)
            ridge = 0.92 * ridge / ridge.max()
            layer = 2 + at
            axis.fill_between(
                grid, base, base + ridge, color=shade, alpha=0.35, linewidth=0, zorder=layer
            )
            axis.plot(grid, base + ridge, color=shade, linewidth=1.4, zorder=layer)
            median = float(np.median(values))
            height = float(np.interp(median, grid, ridge))
            axis.plot([median] * 2, [base, base + height], color=INK, linewidth=1.6, zorder=layer)
            axis.plot(
                values, np.full(len(values), base - 0.06), "|", color=shade, markersize=4,
                alpha=0.6, zorder=layer, rasterized=len(values) > 200,
            )  # fmt: skip
        names = [f"{name}\nn = {len(values):,}" for name, values, _ in groups]
        axis.set_yticks(range(len(groups) - 1, -1, -1), names, va="bottom")
        axis.set_ylim(-0.2, len(groups) + 0.05)
        axis.set_xlim(grid[0], grid[-1])
        axis.spines["left"].set_visible(False)
        axis.tick_params(axis="y", length=0)
        axis.set_xlabel(
            "Score, in robust standard deviations from the median of the dataset's non-members"
        )
        seeds = len(data.loaded)
        setting = "" if column.setting in ("default", "-") else f", {column.setting}"
        where = data.cohort.label()
        return save_figure(
            figure,
            folder,
            name="scores",
            title=f"Scores of {detector}{setting}" + (f" ({where})" if where else ""),
            caption="Ridges are kernel densities of equal height, black lines the medians, the "
            "dashed line the median of non-members; each short stroke is one example of the "
            f"test split. {len(rows.members):,} members, {len(rows.nonmembers):,} non-members, "
            + ("one training seed." if seeds == 1 else f"{seeds} training seeds."),
            alternative="Distributions of scores, their medians in robust standard deviations: "
            + ", ".join(f"{name} {np.median(values):.2f}" for name, values, _ in groups)
            + ".",
            data=[
                {"group": name, "score": float(value)}
                for name, values, _ in groups
                for value in values
            ],
        )


def _density(values: Floats, grid: Floats) -> Floats:
    """Gaussian kernel density with Silverman's bandwidth; a spike where all are equal."""
    spread = min(
        float(np.std(values)), float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34
    )
    width = 0.9 * (spread or float(np.std(values))) * len(values) ** -0.2
    width = max(width, float(grid[1] - grid[0]))
    density: Floats = np.exp(-0.5 * ((grid[:, None] - values) / width) ** 2).sum(axis=1)
    return density if density.max() > 0 else np.ones_like(density)
