"""Numbers as coloured cells: blue below chance, orange above, white at chance, each written out.

The ground of a cell has one colour on a light page and on a dark one; so have the letters on it.
"""

from typing import Any

import numpy as np

from analysis.figures.style import GRID, ON_DARK, ON_LIGHT, PALETTE
from analysis.metrics import Floats

_WHITE = "#fefefe"
"""Not the paper's white, which turns dark with the page."""
_DARK_FROM = 0.92
"""Of the largest distance from chance: letters on a stronger colour are white."""


def auc_reach(values: Floats) -> float:
    """Return how far the farthest AUC is from 0.5: both sides of the scale have this length."""
    there = values[np.isfinite(values)]
    return max(0.02, float(np.abs(there - 0.5).max())) if len(there) else 0.02


def draw_cells(
    axis: Any, values: Floats, reach: float, *, size: float, bold: Any = None, origin: str = "lower"
) -> Any:
    """Draw AUCs as cells and return the image, for a colour bar.

    Args:
        axis: where.
        values: [rows, columns]; NaN leaves a cell blank.
        reach: from `auc_reach`.
        size: of the letters, in points.
        bold: [rows, columns] of bool: which numbers are written bold; None for none.
        origin: which end the first row stands at, `lower` or `upper`.
    """
    from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

    ramp = LinearSegmentedColormap.from_list("auc", [PALETTE[1], _WHITE, PALETTE[0]], bad=GRID)
    image = axis.imshow(
        np.ma.masked_invalid(values),
        cmap=ramp,
        norm=TwoSlopeNorm(0.5, 0.5 - reach, 0.5 + reach),
        aspect="auto",
        origin=origin,
    )
    for row, column in np.argwhere(np.isfinite(values)):
        value = values[row, column]
        axis.text(
            column,
            row,
            f"{value:.2f}".removeprefix("0"),
            ha="center",
            va="center",
            fontsize=size,
            fontweight="bold" if bold is not None and bold[row, column] else "normal",
            color=ON_DARK if abs(value - 0.5) > _DARK_FROM * reach else ON_LIGHT,
        )
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
    return image
