"""The step that draws all figures of a run: of its results, and of what else was measured.

It is apart from the steps that compute what is drawn, so that a figure that looks otherwise makes
no number anew.
"""

from collections.abc import Sequence
from pathlib import Path

from analysis.arm import Arm, axis_names, cohorts
from analysis.factors.findings import detector_lines
from analysis.factors.study import collect_study
from analysis.figures.accuracy import draw_accuracy_gain
from analysis.figures.cohort_scores import load_cohort
from analysis.figures.copies import draw_copies
from analysis.figures.detectors import draw_detectors
from analysis.figures.factors import draw_factors
from analysis.figures.heat_maps.arms import draw_heat_map
from analysis.figures.heat_maps.surp_grid import draw_surp_grid
from analysis.figures.roc import draw_roc
from analysis.figures.scores import draw_scores
from analysis.figures.style import PALETTE, ReportFigure, write_figures
from analysis.figures.sweep import draw_sweeps
from analysis.figures.training import draw_training
from analysis.figures.trajectory import trajectory_figures
from analysis.figures.unlearning.figures import unlearning_figures
from analysis.findings import read_table
from analysis.metrics_table import CohortMetrics, contaminated_cohorts, split_by_cohort
from analysis.results import Analysis, open_arms, read_analysis
from analysis.selection.ranking import rank_detectors, reported_cell
from analysis.settings import AnalysisSettings
from analysis.summary import Headline, find_headline
from analysis.task_accuracy.accuracy_gain import accuracy_gain_tables
from analysis.trajectory.checkpoints import read_trajectory
from inject.step import Step, StepContext
from inject.stream.exposures import RECORDS

_READ = {"confidence", "zero_copies", "max_unscored", "min_members", "high_copies"}


def figures_step(
    results: Step,
    *,
    trajectory: Step | None,
    unlearning: Step | None,
    accuracy_gain: Step | None,
) -> Step:
    """Draw the figures of an experiment.

    Args:
        results: what is found of all models (`analysis.results`).
        trajectory: detection at every checkpoint; None where none is kept.
        unlearning: what unlearned models forgot and kept; None where there are none.
        accuracy_gain: what task accuracy gained; None where no dataset has closed answers.
    """
    measured = {
        "trajectory": trajectory,
        "unlearning": unlearning,
        "accuracy_gain": accuracy_gain,
    }
    models = {
        name: step
        for name, step in results.inputs.items()
        if name.partition("-")[2] in ("scores", "examples", "model")
    }
    return Step(
        kind="figures",
        label=results.label,
        function=f"{__name__}:build",
        settings={
            "analysis": {name: results.settings["analysis"][name] for name in sorted(_READ)},
            "arms": results.settings["arms"],
        },
        inputs={
            **models,
            "results": results,
            **{name: step for name, step in measured.items() if step is not None},
        },
        libraries=("numpy", "scipy", "matplotlib"),
        reads={name: RECORDS for name in models if name.endswith("-model")},
    )


def build(context: StepContext) -> None:
    """Draw the figures, and write them in the order of the page."""
    arms = open_arms(context.settings["arms"], context.inputs)
    axes = axis_names(arms)
    folder, out = context.inputs.get, context.out
    figures = build_figures(
        out,
        arms,
        read_analysis(context.inputs["results"]),
        AnalysisSettings.model_validate(context.settings["analysis"]),
    )
    if made := folder("trajectory"):
        figures += trajectory_figures(out, read_trajectory(made), axes)
    if made := folder("unlearning"):
        figures += unlearning_figures(out, read_table(made, "unlearning").to_pylist())
    if made := folder("accuracy_gain"):
        tables = accuracy_gain_tables(read_table(made, "accuracy"), axes)
        if gain := draw_accuracy_gain(out / "figures", tables):
            figures.append(gain)
    write_figures(out, figures)


def build_figures(
    out: Path,
    arms: Sequence[Arm],
    analysis: Analysis,
    settings: AnalysisSettings,
) -> list[ReportFigure]:
    """Draw the results: write figures/*.svg, *.png and *.csv under `out`.

    ROC curves, score distributions and the grid of SURP show the arm of the headline; the others
    show all contaminated arms. Figures without data are left out. Cost: 3 to 6 s.

    Returns:
        The figures in the order of the page.
    """
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
        if analysis.factors is not None:
            study = collect_study(arms, analysis.choices_by_cohort, settings)
            lines = [
                detector_lines(study, one, settings) for one in study.detectors if one in emphasised
            ]
            responses = [found for one in lines for found in one.responses]
            comparisons = [found for one in lines for found in one.comparisons]
            figures += draw_factors(folder, responses, comparisons, emphasised)
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
