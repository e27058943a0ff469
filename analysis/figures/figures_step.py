"""The step that draws all figures of a run: of its results, and of what else was measured.

It is apart from the steps that compute what is drawn, so that a figure that looks otherwise makes
no number anew.
"""

from collections.abc import Sequence

from analysis.arm import Arm, axis_names, cohorts
from analysis.factors.findings import detector_lines
from analysis.factors.study import collect_study
from analysis.figures.cohort import load_cohort, roc_figure, scores_figure
from analysis.figures.copies import copies_figure, dose_response_figure
from analysis.figures.dots import accuracy_gain_figure, contrasts_figure, detectors_figure
from analysis.figures.lines import sweep_figures
from analysis.figures.panel import PALETTE, Figure
from analysis.figures.render import write_figures
from analysis.figures.surp_grid import surp_grid_figure
from analysis.figures.trajectory import training_figure, trajectory_figures
from analysis.figures.unlearning.figures import target_figure
from analysis.figures.unlearning.measured import measured_models
from analysis.findings import read_table
from analysis.metrics_table import contaminated_cohorts, split_by_cohort
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
    """Draw the figures, and write them in the order of the page. Cost: 3 to 6 s."""
    arms = open_arms(context.settings["arms"], context.inputs)
    axes = axis_names(arms)
    folder = context.inputs.get
    settings = AnalysisSettings.model_validate(context.settings["analysis"])
    figures: list[Figure | None] = []
    figures += results_figures(arms, read_analysis(context.inputs["results"]), settings)
    if made := folder("trajectory"):
        figures += trajectory_figures(read_trajectory(made), axes)
    if made := folder("unlearning"):
        measured = measured_models(read_table(made, "unlearning").to_pylist())
        figures.append(target_figure(measured))
    if made := folder("accuracy_gain"):
        tables = accuracy_gain_tables(read_table(made, "accuracy"), axes)
        figures.append(accuracy_gain_figure(tables))
    write_figures(context.out, [figure for figure in figures if figure is not None])


def results_figures(
    arms: Sequence[Arm], analysis: Analysis, settings: AnalysisSettings
) -> list[Figure]:
    """Return the figures of the results that have data, in the order of the page.

    ROC curves, score distributions and the grid of SURP show the arm of the headline; the others
    show all contaminated arms.
    """
    tables = split_by_cohort(analysis.metrics, axis_names(arms))
    seen = contaminated_cohorts(tables)
    best = find_headline(tables)
    figures: list[Figure | None] = []
    if best is not None:
        emphasised = highlighted_detectors(best)
        choices = analysis.choices_by_cohort[best.table.cohort]
        data = load_cohort(arms, choices, best.table.cohort)
        figures += [
            detectors_figure(seen, best.table),
            *sweep_figures(seen, emphasised),
            copies_figure(seen, highlighted_detectors(best, max_count=3)),
            roc_figure(data, best.table, emphasised, settings),
            scores_figure(data, best.detector, best.selection, settings),
            surp_grid_figure(data, choices, settings),
        ]
        if analysis.factors is not None:
            study = collect_study(arms, analysis.choices_by_cohort, settings)
            lines = [
                detector_lines(study, name, settings)
                for name in study.detectors
                if name in emphasised
            ]
            responses = [response for one in lines for response in one.responses]
            comparisons = [comparison for one in lines for comparison in one.comparisons]
            figures += [
                dose_response_figure(responses, emphasised),
                contrasts_figure(comparisons, emphasised[0]),
            ]
    first = [(c, same[0]) for c, same in cohorts(arms).items() if c.model == "contaminated"]
    figures.append(training_figure(first))
    return [figure for figure in figures if figure is not None]


def highlighted_detectors(best: Headline, max_count: int = len(PALETTE)) -> list[str]:
    """Return the detectors drawn in colour: the best of the headline's arm, and `loss`."""
    table = best.table
    names = rank_detectors({name: reported_cell(table, name) for name in table.values("detector")})
    if "loss" in names[max_count:]:
        return [*names[: max_count - 1], "loss"]
    return names[:max_count]
