"""The step of an experiment's results: findings, scores, and what was chosen and left out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pydantic import TypeAdapter

from analysis.arm import Arm
from analysis.compared_rows import UnscoredRows
from analysis.dataset_detectors.registry import method_roots
from analysis.factors.findings import analyse_factors
from analysis.findings import as_table, questions, read_findings, write_findings
from analysis.results import Analysis, CohortChoice, analyse
from analysis.settings import AnalysisSettings
from detect.scores.table import SCORES_FILE, default_settings
from inject.settings import plain
from inject.step import Step, StepContext, StepGroup, compared_models, comparing_step
from inject.stream.exposures import RECORDS, read_exposures, seen_copy_counts, seen_variants
from inject.tables import read_parquet

CHOICES_FILE = "choices.json"

_CHOICES = TypeAdapter(tuple[CohortChoice, ...])
_UNSCORED = TypeAdapter(tuple[UnscoredRows, ...])


def results_step(models: Sequence[StepGroup], settings: AnalysisSettings, *, label: str) -> Step:
    """Analyse all models of an experiment.

    Args:
        models: their values are `axes` (pairs), `seed`, `model` (`contaminated`, `base`, `twin` or
            `retrained`) and `fixed_levels`; their steps `scores`, `examples`, `model` (none where
            it saw no copies, whose number has no meaning) and what dataset-level detectors read
            besides, by the names of `Arm.further`.
        settings: of the analysis.
        label: for people.
    """
    # Whether models are asked questions is visible in the graph.
    used = plain(settings, exclude={"task_accuracy", "shards", "shuffles"})
    return comparing_step(
        f"{__name__}:build",
        models,
        kind="results",
        label=label,
        settings={"analysis": used},
        reading=RECORDS,
        libraries=("numpy", "scipy", "scikit-learn", "statsmodels"),
        code=method_roots(settings.dataset_detectors),
    )


def build(context: StepContext) -> None:
    """Analyse the models, and write what was found."""
    settings = AnalysisSettings.model_validate(context.settings["analysis"])
    arms = open_arms(context.settings["arms"], context.inputs)
    done = 0

    def on_cohort(cohort: str) -> None:
        nonlocal done
        context.report(done, len(arms), unit="models", note=cohort)
        done += 1

    analysis = analyse(arms, settings, progress=on_cohort)
    context.report(len(arms), len(arms), unit="models", note="factors")
    factors = analyse_factors(arms, analysis.choices_by_cohort, settings)
    tables = {**analysis.tables, "factors": factors}
    write_analysis(context.out, replace(analysis, tables=tables))


def open_arms(models: Sequence[Mapping[str, Any]], inputs: Mapping[str, Path]) -> list[Arm]:
    """Return the models of `results_step`.

    Args:
        models: the step's setting `arms`.
        inputs: the folders of its inputs.

    Raises:
        InputError: scores or exposures are missing or damaged.
    """
    found = []
    for model, folders in compared_models(models, inputs):
        scores, examples = folders.pop("scores"), folders.pop("examples")
        training = folders.pop("model", None)
        seen = None if training is None else read_exposures(training)
        found.append(
            Arm(
                axes=model["axes"],
                seed=model["seed"],
                model=model["model"],
                scores=scores,
                examples=examples,
                copies=None if seen is None else seen_copy_counts(seen),
                variants={} if seen is None else seen_variants(seen),
                defaults=default_settings(scores),
                training=training,
                fixed_levels=model["fixed_levels"],
                further=folders,
            )
        )
    return found


def write_analysis(folder: Path, analysis: Analysis) -> None:
    """Write an analysis into a folder."""
    write_findings(folder, analysis.tables)
    pq.write_table(analysis.scores, folder / SCORES_FILE)
    choices = {
        "choices": _CHOICES.dump_python(analysis.choices, mode="json"),
        "unscored": _UNSCORED.dump_python(analysis.unscored, mode="json"),
    }
    (folder / CHOICES_FILE).write_text(json.dumps(choices, indent=1))


def read_analysis(folder: Path) -> Analysis:
    """Read what `write_analysis` wrote.

    Raises:
        InputError: naming the table that is missing or damaged.
    """
    choices = json.loads((folder / CHOICES_FILE).read_text())
    findings = read_findings(folder)
    return Analysis(
        tables={name: as_table(findings, name) for name in questions(findings)},
        scores=read_parquet(folder / SCORES_FILE),
        choices=_CHOICES.validate_python(choices["choices"]),
        unscored=_UNSCORED.validate_python(choices["unscored"]),
    )
