"""All figures of an unlearning study, in the order of the page."""

from collections.abc import Sequence
from pathlib import Path

from analysis.figures.style import ReportFigure
from analysis.figures.unlearning.copies import draw_copies
from analysis.figures.unlearning.measured import Row, measured_models
from analysis.figures.unlearning.measures import draw_measures
from analysis.figures.unlearning.target import draw_target


def unlearning_figures(out: Path, rows: Sequence[Row]) -> list[ReportFigure]:
    """Write figures/*.svg, *.png and *.csv under `out`; figures without data are left out.

    Args:
        out: a folder.
        rows: of `unlearning.parquet`, keys in the order of its columns.

    Cost: about 2 s.
    """
    measured = measured_models(rows)
    draw = (draw_target, draw_measures, draw_copies)
    drawn = (one(out / "figures", measured) for one in draw)
    return [figure for figure in drawn if figure is not None]
