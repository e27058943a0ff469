"""Figures of one cohort's scores: ROC curves, and how one detector's scores are distributed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.arm import MODEL_FREE, Arm, Cohort, Column, LoadedArm, cohorts, load_arm
from analysis.auc_cells import Counts
from analysis.compared_rows import compare_rows
from analysis.copy_bins import copies_cells, is_dose
from analysis.figures.captions import describe_sample_sizes, seeds_text
from analysis.figures.panel import (
    INK,
    MUTED,
    Axis,
    Figure,
    Panel,
    Rule,
    Scale,
    Series,
    detector_colours,
    dose_colours,
)
from analysis.metrics import SUPPORT, Floats
from analysis.metrics_table import Cell, CohortMetrics
from analysis.selection.ranking import highest_first
from analysis.selection.tuning import Choice, reported_columns
from analysis.settings import AnalysisSettings

_FLOOR = 1e-3
_MAX_CURVES = 9
_MIN_SPAN = 0.1
"""Where the lowest supported rate is higher than this, logarithms would show nothing more."""
_LIMITS = (0.005, 0.995)
"""Quantiles of the scores that a figure of them reaches to."""


class CohortRows(NamedTuple):
    """Test rows of one column over all seeds and datasets of a cohort."""

    exceeded: Floats
    """Per member: the share of its own dataset's non-members that score as high or higher."""
    copies: Counts
    """Per member: realised copies."""
    members: Floats
    """Per member: score in robust standard deviations of its dataset's non-members from
    their median (median absolute deviation × 1.4826)."""
    nonmembers: Floats
    """Per non-member, on the same scale."""


class CohortData(NamedTuple):
    """A cohort's arms in memory with the columns that are reported."""

    cohort: Cohort
    loaded: Sequence[LoadedArm]
    columns: dict[Column, tuple[str, ...]]

    def column(self, detector: str, selection: str) -> Column:
        """Return the column of a detector under a selection."""
        return next(
            column
            for column, selections in self.columns.items()
            if column.detector == detector and selection in selections
        )


def load_cohort(arms: Sequence[Arm], choices: Sequence[Choice], cohort: Cohort) -> CohortData:
    """Read the arms of one cohort with the settings that were chosen."""
    loaded = [load_arm(arm) for arm in cohorts(arms)[cohort]]
    return CohortData(cohort, loaded, reported_columns(loaded, choices))


def cohort_rows(data: CohortData, column: Column, settings: AnalysisSettings) -> CohortRows:
    """Place and standardise one column's scores, within each dataset and seed."""
    parts = []
    for arm in data.loaded:
        for dataset in dict.fromkeys(arm.dataset[arm.test]):
            rows = compare_rows(
                arm, list(data.columns), dataset, cohort=data.cohort, settings=settings
            ).rows(column)
            scores = arm.scores[:, arm.index[column]]
            inside, outside = scores[rows & arm.member], np.sort(scores[rows & ~arm.member])
            if not len(inside) or not len(outside):
                continue
            higher = len(outside) - np.searchsorted(outside, inside, side="left")
            centre = np.median(outside)
            scale = 1.4826 * np.median(np.abs(outside - centre)) or 1.0
            parts.append((higher / len(outside), arm.copies[rows & arm.member],
                          (inside - centre) / scale, (outside - centre) / scale))  # fmt: skip
    if not parts:
        empty = np.zeros(0)
        return CohortRows(empty, empty.astype(np.int64), empty, empty)
    return CohortRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def roc_figure(
    data: CohortData, table: CohortMetrics, emphasised: Sequence[str], settings: AnalysisSettings
) -> Figure:
    """Return the covariate-adjusted ROC curves (one threshold for each dataset) of a cohort.

    Logarithmic axes go down to the lowest rate that the number of non-members supports, by the
    rule of the table of rates; where that is hardly below 0.1, they are left out.
    """
    selection = "tuned" if "tuned" in table.values("selection") else "default"
    every = {name: table.get(name, selection=selection) for name in table.values("detector")}
    known = [(name, cell) for name, cell in every.items() if cell is not None and cell.available]
    known = [known[at] for at in highest_first([cell.value for _, cell in known])]
    cells = dict(_drawn(known, emphasised))
    least = 0 if data.loaded[0].arm.copies is None else 1
    exceeded = {}
    for name in cells:
        rows = cohort_rows(data, data.column(name, selection), settings)
        exceeded[name] = np.sort(rows.exceeded[rows.copies >= least])
    floor = max(_FLOOR, lowest_rate(cells))
    deep = floor <= _MIN_SPAN
    right = (
        f"Linear axes on the left, logarithmic on the right, down to {floor:.2g}, the lowest "
        "rate that so many non-members support"
        if deep
        else f"So few non-members support no rate below {floor:.2g}, so there are no "
        "logarithmic axes"
    )
    dots = ", dots the blind control" if MODEL_FREE & cells.keys() else ""
    some = (
        f" The {len(cells)} curves of the strongest of {len(known)} detectors, of loss and of "
        "the control; the tables have all."
        if len(cells) < len(known)
        else ""
    )
    where = data.cohort.label()
    auc = ", ".join(f"{name} {cell.value:.2f}" for name, cell in cells.items())
    return Figure(
        name="roc",
        title="ROC curves" + (f" ({where})" if where else ""),
        caption=f"{right}; {selection} settings, members with at least one copy. Thresholds "
        f"are set within each dataset, dashes mark chance{dots}; the key gives the AUC. "
        f"{describe_sample_sizes([cells])}{some}",
        alternative=f"ROC curves, by falling AUC: {auc or 'none'}.",
        panels=[
            _roc_panel(exceeded, cells, emphasised, 0.0),
            *([_roc_panel(exceeded, cells, emphasised, floor)] if deep else []),
        ],
        rows=[
            {"detector": name, "false_positive_rate": x, "true_positive_rate": y}
            for name in reversed(cells)
            for x, y in zip(*_steps(exceeded[name], 0.0), strict=True)
        ],
        height=4.4,
        columns=2,
        shared="",
    )


def _drawn(ranked: list[tuple[str, Cell]], emphasised: Sequence[str]) -> list[tuple[str, Cell]]:
    """Return the curves that are drawn: at most so many as the key holds."""
    if len(ranked) <= _MAX_CURVES:
        return ranked
    always = {name for name, _ in ranked if name in MODEL_FREE or name in (*emphasised, "loss")}
    free = max(0, _MAX_CURVES - len(always))
    others = [name for name, _ in ranked if name not in always][:free]
    return [item for item in ranked if item[0] in {*always, *others}]


def lowest_rate(cells: Mapping[str, Cell]) -> float:
    """Return the lowest false-positive rate that the non-members of all curves support."""
    fewest = min((cell.n_nonmembers // max(1, cell.n_seeds) for cell in cells.values()), default=0)
    return min(1.0, SUPPORT / fewest) if fewest else 1.0


def _roc_panel(
    exceeded: Mapping[str, Floats],
    cells: Mapping[str, Cell],
    emphasised: Sequence[str],
    floor: float,
) -> Panel:
    """Return the curves from a rate on, by logarithms where that is not 0; names on linear axes."""
    colours = detector_colours(list(cells), emphasised)
    series = [Series(x=[floor, 1], y=[floor, 1], line="dashed", colour=MUTED, width=1)]
    for name, cell in cells.items():
        x, y = _steps(exceeded[name], floor)
        blind = name in MODEL_FREE
        series.append(
            Series(
                x=x,
                y=[max(height, floor) for height in y],
                label="" if floor else f"{name}  {cell.value:.2f}",
                colour=INK if blind else colours[name],
                line="dotted" if blind else "solid",
                steps=True,
                width=2.0 if name in emphasised else 1.1,
            )
        )
    ticks = [tick for tick in (0.001, 0.01, 0.1, 1) if tick >= floor]
    if len(ticks) < 3:
        ticks = [tick for tick in (0.02, 0.05, 0.1, 0.2, 0.5, 1) if tick >= floor]
    written = {tick: f"{tick:g}" for tick in ticks} if floor else None
    scale: Scale = "log" if floor else "linear"
    return Panel(
        title="Logarithmic axes" if floor else "Linear axes",
        series=series,
        x=Axis(label="False-positive rate", scale=scale, limits=(floor, 1), ticks=written),
        y=Axis(label="True-positive rate", scale=scale, limits=(floor, 1.02), ticks=written),
        labels="corner",
        square=True,
    )


def _steps(exceeded: Floats, floor: float) -> tuple[list[float], list[float]]:
    """Return false-positive rates from a floor on, and the true-positive rates there."""
    if not len(exceeded):
        return [], []
    grid = np.unique(np.concatenate([[floor, 1.0], exceeded[exceeded >= floor]]))
    share = np.searchsorted(exceeded, grid, side="right") / len(exceeded)
    start = [0.0] if floor == 0.0 else []
    return [*start, *grid.tolist()], [*start, *share.tolist()]


def scores_figure(
    data: CohortData, detector: str, selection: str, settings: AnalysisSettings
) -> Figure | None:
    """Return a density a group with its median, of non-members and of members by their copies."""
    column = data.column(detector, selection)
    rows = cohort_rows(data, column, settings)
    if len(rows.nonmembers) < 2 or len(rows.members) < 2:
        return None
    groups = _score_groups(rows, settings)
    low, high = np.quantile(np.concatenate([rows.nonmembers, rows.members]), _LIMITS)
    margin = 0.12 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 400)
    colours = [MUTED, *dose_colours(len(groups) - 1)]
    setting = "" if column.setting in ("default", "-") else f", {column.setting}"
    where = data.cohort.label()
    medians = {name: float(np.median(values)) for name, values in groups.items()}
    return Figure(
        name="scores",
        title=f"Scores of {detector}{setting}" + (f" ({where})" if where else ""),
        caption="Ridges are kernel densities of equal height, black lines the medians, the "
        "dashed line the median of non-members; each short stroke is one example of the "
        f"test split. {len(rows.members):,} members, {len(rows.nonmembers):,} non-members, "
        f"{seeds_text([len(data.loaded)])}",
        alternative="Distributions of scores, their medians in robust standard deviations: "
        + ", ".join(f"{name} {median:.2f}" for name, median in medians.items())
        + ".",
        panels=[
            Panel(
                series=[
                    series
                    for at, (values, colour) in enumerate(
                        zip(groups.values(), colours, strict=True)
                    )
                    for series in _ridge(values, grid, colour, at + 0.4)
                ],
                x=Axis(
                    label="Score, in robust standard deviations from the median of the dataset's "
                    "non-members",
                    limits=(float(grid[0]), float(grid[-1])),
                ),
                y=Axis(names=[f"{name}, n = {len(groups[name]):,}" for name in groups]),
                rules=[Rule(medians["non-members"], "x")],
            )
        ],
        rows=[
            {"group": name, "score": float(value)}
            for name, values in groups.items()
            for value in values
        ],
        height=0.9 + 0.66 * len(groups),
    )


def _score_groups(rows: CohortRows, settings: AnalysisSettings) -> dict[str, Floats]:
    groups = {"non-members": rows.nonmembers}
    for cell in copies_cells(rows.copies.tolist(), high_copies=settings.high_copies):
        values = rows.members[cell.holds(rows.copies)]
        if is_dose(cell.label) and len(values) >= settings.min_members:
            groups[f"{cell.label} {'copy' if cell.label == '1' else 'copies'}"] = values
    return groups


def _ridge(values: Floats, grid: Floats, colour: str, base: float) -> list[Series]:
    """Return a density above a base line, its median, and a stroke an example below it."""
    density = _density(values, grid)
    ridge = base - 0.92 * density / density.max()
    median = float(np.median(values))
    height = float(np.interp(median, grid, ridge))
    floor = np.full(len(grid), base)
    return [
        Series(x=grid, y=ridge, low=floor, high=ridge, interval="area", line="solid",
               colour=colour, width=1.4),
        Series(x=[median, median], y=[base, height], line="solid", width=1.6),
        Series(x=values, y=np.full(len(values), base + 0.06), mark="|", colour=colour, size=4,
               width=0.6),
    ]  # fmt: skip


def _density(values: Floats, grid: Floats) -> Floats:
    """Gaussian kernel density with Silverman's bandwidth; a spike where all are equal."""
    spread = min(
        float(np.std(values)), float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34
    )
    width = 0.9 * (spread or float(np.std(values))) * len(values) ** -0.2
    width = max(width, float(grid[1] - grid[0]))
    density: Floats = np.exp(-0.5 * ((grid[:, None] - values) / width) ** 2).sum(axis=1)
    return density if density.max() > 0 else np.ones_like(density)
