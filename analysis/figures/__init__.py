"""All figures of a report: SVG, PNG, the CSV behind it, and a caption that names n and seeds."""

from collections.abc import Sequence
from pathlib import Path

from analysis.arm import Arm, axis_names, cohorts
from analysis.factors.findings import Factors
from analysis.figures.style import PALETTE, ReportFigure
from analysis.metrics_table import CohortMetrics, contaminated_cohorts, split_by_cohort
from analysis.results import Analysis
from analysis.selection.ranking import rank_detectors, reported_cell
from analysis.settings import AnalysisSettings
from analysis.summary import Headline, find_headline

__all__ = ["ReportFigure", "build_figures"]


def build_figures(
    out: Path,
    arms: Sequence[Arm],
    analysis: Analysis,
    settings: AnalysisSettings,
    factors: Factors | None = None,
) -> list[ReportFigure]:
    """Write figures/*.svg, *.png and *.csv under `out` and return them in the order of the page.

    ROC curves, score distributions and the grid of SURP show the arm of the headline; the others
    show all contaminated arms. Figures without data are left out. Cost: 3 to 6 s.
    """
    from analysis.figures.cohort_scores import load_cohort
    from analysis.figures.copies import draw_copies
    from analysis.figures.detectors import draw_detectors
    from analysis.figures.factors import draw_factors
    from analysis.figures.heat_maps.arms import draw_heat_map
    from analysis.figures.heat_maps.surp_grid import draw_surp_grid
    from analysis.figures.roc import draw_roc
    from analysis.figures.scores import draw_scores
    from analysis.figures.sweep import draw_sweeps
    from analysis.figures.training import draw_training

    folder = out / "figures"
    tables = split_by_cohort(analysis.metrics, axis_names(arms))
    seen = contaminated_cohorts(tables)
    best = find_headline(tables)
    figures: list[ReportFigure | None] = []
    if best is not None:
        emphasised = highlighted_detectors(best)
        data = load_cohort(arms, analysis, best.table.cohort)
        figures += [
            draw_detectors(folder, seen, best.table),
            draw_heat_map(folder, seen, best.table),
            *draw_sweeps(folder, seen, emphasised),
            draw_copies(folder, seen, highlighted_detectors(best, max_count=3)),
            draw_roc(
                folder,
                data,
                best.table,
                emphasised=emphasised,
                settings=settings,
            ),
            draw_scores(folder, data, best.detector, best.selection, settings),
            draw_surp_grid(folder, data, analysis, settings),
        ]
        if factors is not None:
            figures += draw_factors(folder, factors.responses, factors.comparisons, emphasised)
    first = [(c, same[0]) for c, same in cohorts(arms).items() if c.model == "contaminated"]
    figures.append(draw_training(folder, first))
    return [figure for figure in figures if figure is not None]


def highlighted_detectors(best: Headline, max_count: int = len(PALETTE)) -> list[str]:
    """Return the detectors drawn in colour: the best of the headline's arm, and `loss`."""
    table: CohortMetrics = best.table
    names = rank_detectors({name: reported_cell(table, name) for name in table.values("detector")})
    if "loss" in names[max_count:]:
        return [*names[: max_count - 1], "loss"]
    return names[:max_count]
