"""The AUC of every detector in every arm as coloured cells: a study at one look.

Rows are detectors, the best of the headline's arm on top; columns are the arms, the values of the
swept factors written under them. Many arms stand in several panels, one for each value of the first
factor. A number is bold where its interval leaves out chance, so that nobody reads a colour alone.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from analysis.arm import MODEL_FREE, arm_label, short_axis
from analysis.figures.captions import describe_extremes, describe_sample_sizes
from analysis.figures.data import cell_columns
from analysis.figures.detectors import strongest
from analysis.figures.heat_maps.auc_grid import auc_reach, draw_cells
from analysis.figures.style import (
    MUTED,
    WIDTH,
    ReportFigure,
    house_style,
    new_figure,
    panel_title,
    save_figure,
)
from analysis.metrics_table import Cell, CohortMetrics
from analysis.selection.ranking import reported_cell

MAX_COLUMNS = 12
"""Numbers in more columns are too small to be read."""
MAX_PANELS = 6
_LETTER = 0.085
"""Inches of a letter under a column."""


def draw_heat_map(
    folder: Path, tables: Sequence[CohortMetrics], best: CohortMetrics
) -> ReportFigure | None:
    """Draw the AUCs of detectors by arms; None where there is one arm.

    Args:
        folder: where to write heat-map.svg, .png and .csv.
        tables: the contaminated arms.
        best: the arm of the headline, which orders the detectors.
    """
    if len(tables) < 2:
        return None
    every = sorted(
        dict.fromkeys(name for table in tables for name in table.values("detector")),
        key=lambda name: (name not in MODEL_FREE, _height(reported_cell(best, name))),
    )
    names = strongest(every)[::-1]
    panels = _panels(tables)
    shown = panels[:MAX_PANELS]
    cells = {
        title: [[reported_cell(table, name) for table in same] for name in names]
        for title, same in shown
    }
    values = {title: np.array([[_value(one) for one in row] for row in rows], dtype=float)
              for title, rows in cells.items()}  # fmt: skip
    reach = auc_reach(np.concatenate([one.ravel() for one in values.values()]))
    factors = _inner(tables, panels)
    lines = max(1, len(factors))
    with house_style():
        figure = new_figure(len(shown) * (0.75 + 0.2 * lines + 0.25 * len(names)))
        axes = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
        image = None
        for axis, (title, same) in zip(axes, shown, strict=True):
            bold = np.array([[_sure(one) for one in row] for row in cells[title]])
            image = draw_cells(axis, values[title], reach, size=8, bold=bold, origin="upper")
            axis.set_yticks(range(len(names)), names)
            letters = int((WIDTH - 2.2) / len(same) / _LETTER)
            heads = [_head(table, factors, letters) for table in same]
            axis.set_xticks(range(len(same)), heads, fontsize=8.5)
            if title:
                panel_title(axis, title, columns=1)
        # What each line under a column is; the paper's readers ask this first.
        axes[-1].set_xlabel(" · ".join(short_axis(one) for one in factors), color=MUTED)
        bar = figure.colorbar(image, ax=list(axes), pad=0.015, aspect=30)
        bar.set_label("AUC")
        bar.outline.set_visible(False)
        drawn = [
            {name: reported_cell(table, name) for name in names}
            for _, same in shown
            for table in same
        ]
        caption = (
            "Tuned settings, all datasets pooled, members with at least one copy. Bold: the 95 % "
            "interval leaves out 0.5; white is chance, blank is no value. Under each column: "
            f"{', '.join(factors) or 'the arm'}. {describe_sample_sizes(drawn)}"
        )
        if len(names) < len(every):
            caption += f" The strongest of {len(every)} detectors, and loss; the CSV has all."
        if len(panels) > len(shown):
            caption += f" {len(panels) - len(shown)} further panels are in the CSV alone."
        return save_figure(
            figure,
            folder,
            name="heat-map",
            title="AUC by detector and arm",
            caption=caption,
            alternative="Coloured cells of AUCs. "
            + " ".join(
                f"{table.cohort.label()}: {describe_extremes(one)}."
                for table, one in zip((t for _, same in shown for t in same), drawn, strict=True)
            ),
            data=_rows(tables, every),
        )


def _panels(tables: Sequence[CohortMetrics]) -> list[tuple[str, list[CohortMetrics]]]:
    """Return the arms by panel: all in one, or apart by the first factors until they fit."""
    keys = [key for key, _ in tables[0].cohort.axes]
    for depth in range(len(keys)):
        found: dict[str, list[CohortMetrics]] = {}
        for table in tables:
            outer = table.cohort.axes[:depth]
            title = arm_label(outer)
            found.setdefault(title, []).append(table)
        if max(len(same) for same in found.values()) <= MAX_COLUMNS:
            return list(found.items())
    cut = [tables[at : at + MAX_COLUMNS] for at in range(0, len(tables), MAX_COLUMNS)]
    return [(f"arms {at * MAX_COLUMNS + 1} on", list(same)) for at, same in enumerate(cut)]


def _inner(
    tables: Sequence[CohortMetrics], panels: Sequence[tuple[str, Sequence[CohortMetrics]]]
) -> list[str]:
    """Return the factors that differ within a panel, which are written under its columns."""
    keys = [key for key, _ in tables[0].cohort.axes]
    return [
        key
        for key in keys
        if any(len({dict(one.cohort.axes)[key] for one in same}) > 1 for _, same in panels)
    ]


def _head(table: CohortMetrics, factors: Sequence[str], letters: int) -> str:
    values = dict(table.cohort.axes)
    return "\n".join(_shortened(values[key] or "–", max(4, letters)) for key in factors)


def _shortened(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _rows(tables: Sequence[CohortMetrics], names: Sequence[str]) -> Iterator[dict[str, object]]:
    for table in tables:
        for name in names:
            cell = reported_cell(table, name)
            if cell is not None:
                yield {**dict(table.cohort.axes), "detector": name, "setting": cell.setting,
                       **cell_columns(cell)}  # fmt: skip


def _sure(cell: Cell | None) -> bool:
    return cell is not None and cell.available and not cell.contains(0.5)


def _value(cell: Cell | None) -> float:
    return float("nan") if cell is None else cell.value


def _height(cell: Cell | None) -> float:
    return cell.value if cell is not None and cell.available else -1.0
