"""The last step: metrics, paired differences, selected scores and figures of all arms.

The artifact holds everything the page shows except the page itself, which also says what a
run cost and is rendered in a second: `load_results` gives it back.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from analysis.arm import Arm
from analysis.dataset_detectors.registry import method_roots
from analysis.factors.findings import analyse_factors
from analysis.figures import ReportFigure, build_figures
from analysis.result_files import read_analysis, write_analysis
from analysis.results import Analysis, analyse
from analysis.settings import AnalysisSettings
from inject.settings import plain
from inject.source_digest import root
from inject.stream.exposures import RECORDS, read_exposures, seen_copy_counts, seen_variants
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.inputs import numbered_folders, numbered_inputs, numbered_reads

FIGURES = "figures.json"


@dataclass(frozen=True, kw_only=True)
class ArmSteps:
    """The steps of one arm that the results are drawn from."""

    axes: Mapping[str, str]
    seed: int
    model: str
    """`contaminated`, `base`, `twin` or `retrained`."""
    scores: Step
    examples: Step
    trained: Step | None = None
    """The arm's model; None for one that saw no copies, whose number has no meaning."""
    fixed_levels: bool = False
    """Whether `copies.levels` gave each number of copies to as many groups as another."""
    further: Mapping[str, Step] = field(default_factory=dict)
    """What dataset-level detectors read of it besides, by the names of `Arm.further`."""


class Results:
    """What `results_step` wrote."""

    def __init__(self, analysis: Analysis, figures: Sequence[ReportFigure]) -> None:
        self.analysis = analysis
        self.figures = figures


def results_step(arms: Sequence[ArmSteps], settings: AnalysisSettings, *, label: str) -> Step:
    """Analyse all arms of an experiment."""
    inputs = numbered_inputs(
        [
            {
                "scores": arm.scores,
                "examples": arm.examples,
                "model": arm.trained,
                **arm.further,
            }
            for arm in arms
        ]
    )

    def build(context: StepContext) -> None:
        found = open_arms(arms, context.inputs)
        done = 0

        def on_cohort(cohort: str) -> None:
            nonlocal done
            context.report(done, len(arms), unit="models", note=cohort)
            done += 1

        analysis = analyse(found, settings, progress=on_cohort)
        context.report(len(arms), len(arms), unit="models", note="factors")
        factors = analyse_factors(found, analysis.choices_by_cohort, settings)
        analysis = replace(analysis, factors=factors.table)
        write_analysis(context.out, analysis)
        figures = build_figures(context.out, found, analysis, settings, factors)
        figures_record(context.out, figures)

    return Step(
        kind="results",
        label=label,
        settings={
            # Whether models are asked questions is visible in the graph.
            "analysis": plain(settings, exclude={"task_accuracy", "shards", "shuffles"}),
            "arms": [
                {
                    # Pairs: a manifest sorts the keys of a mapping, and an arm's name is in order.
                    "axes": [list(pair) for pair in arm.axes.items()],
                    "seed": arm.seed,
                    "model": arm.model,
                    "fixed_levels": arm.fixed_levels,
                }
                for arm in arms
            ],
        },
        inputs=inputs,
        libraries=("numpy", "scipy", "matplotlib", "scikit-learn", "statsmodels"),
        code=(root(build), *method_roots(settings.dataset_detectors)),
        reads=numbered_reads(inputs, "model", RECORDS),
        build=build,
    )


def load_results(folder: Path) -> Results:
    """Read a results artifact."""
    return Results(read_analysis(folder), recorded_figures(folder))


def figures_record(out: Path, figures: Sequence[ReportFigure]) -> None:
    """Write down which figures an artifact holds."""
    record = [
        {
            "name": figure.name,
            "title": figure.title,
            "caption": figure.caption,
            "alternative": figure.alternative,
            "svg": str(figure.svg.relative_to(out)),
            "png": str(figure.png.relative_to(out)),
        }
        for figure in figures
    ]
    (out / FIGURES).write_text(json.dumps(record, indent=1))


def recorded_figures(folder: Path) -> list[ReportFigure]:
    """Return the figures of an artifact."""
    return [
        ReportFigure(
            name=one["name"],
            title=one["title"],
            caption=one["caption"],
            alternative=one["alternative"],
            svg=folder / one["svg"],
            png=folder / one["png"],
        )
        for one in json.loads((folder / FIGURES).read_text())
    ]


def open_arms(arms: Sequence[ArmSteps], inputs: Mapping[str, Any]) -> list[Arm]:
    """Return the arms with the paths of their artifacts, by the names of `results_step`."""
    found = []
    for number, arm in enumerate(arms):
        folders = numbered_folders(inputs, number)
        training = folders.get("model")
        copies: dict[str, int] | None = None
        variants: dict[str, str] = {}
        if training is not None:
            seen = read_exposures(training)
            copies, variants = seen_copy_counts(seen), seen_variants(seen)
        found.append(
            Arm(
                axes=arm.axes,
                seed=arm.seed,
                model=arm.model,
                scores=folders["scores"],
                examples=folders["examples"],
                copies=copies,
                variants=variants,
                defaults=dict(arm.scores.settings["defaults"]),
                training=training,
                fixed_levels=arm.fixed_levels,
                further={name: folders[name] for name in arm.further},
            )
        )
    return found
