"""The step of what training did to the models: task accuracy, and loss on held-out background.

The documents of the background follow those of the corpus in the mixture's order; no model is
trained on them. Each number is the mean over documents of their mean negative log-likelihood, in
nats per token; the change is paired by document. Intervals are Student's over documents, and over
seeds as readers (`analysis.intervals.clustered`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analysis.arm import axis_column, axis_names, gather_seeds
from analysis.findings import question_table, write_findings
from analysis.intervals.rows import Rows, mean_numbers
from analysis.settings import AnalysisSettings
from analysis.task_accuracy.contamination import AccuracyArm, accuracy_table
from analysis.unlearning.evidence import text_memory
from detect.token_statistics import read_statistics
from inject.step import Step, StepContext, StepGroup, compared_models, comparing_step
from inject.stream.exposures import EXPOSURES, read_exposures, seen_copy_counts

BACKGROUND_LOSS = "background_loss"
METRICS = ("before", "after", "change")
_USED = {"confidence", "zero_copies"}


def accuracy_gain_step(
    arms: Sequence[StepGroup], settings: AnalysisSettings, *, label: str
) -> Step:
    """Compare members and non-members, before and after, over all arms of an experiment.

    Args:
        arms: their values are `axes` (pairs) and `seed`; their steps `after` and `before` (the
            answers; no `before` without a base model), `examples`, `model`, and, if the loss on
            background is measured, `background-after` and `background-before`.
        settings: of the analysis.
        label: for people.
    """
    return comparing_step(
        f"{__name__}:build",
        arms,
        kind="accuracy_gain",
        label=label,
        settings={"analysis": settings.model_dump(mode="json", include=_USED)},
        reading=EXPOSURES,
        libraries=("numpy",),
    )


def build(context: StepContext) -> None:
    """Compare the answers and the losses, and write the tables."""
    settings = AnalysisSettings.model_validate(context.settings["analysis"])
    compared = list(compared_models(context.settings["arms"], context.inputs))
    arms = [
        AccuracyArm(
            axes=values["axes"],
            seed=values["seed"],
            before=folders.get("before"),
            after=folders["after"],
            examples=folders["examples"],
            copies=seen_copy_counts(read_exposures(folders["model"])),
        )
        for values, folders in compared
        if "after" in folders
    ]
    backgrounds = [
        BackgroundArm(
            values["axes"],
            values["seed"],
            folders.get("background-before"),
            folders["background-after"],
        )
        for values, folders in compared
        if "background-after" in folders
    ]
    tables = {}
    if arms:
        tables["accuracy"] = accuracy_table(arms, settings)
    if backgrounds:
        tables[BACKGROUND_LOSS] = background_loss_table(backgrounds, confidence=settings.confidence)
    write_findings(context.out, tables)


class BackgroundArm(NamedTuple):
    """The statistics of held-out background under one arm's models."""

    axes: Mapping[str, str]
    seed: int
    before: Path | None
    """None without a base model."""
    after: Path


def background_loss_table(arms: Sequence[BackgroundArm], *, confidence: float) -> pa.Table:
    """Return a row per arm and metric: `before`, `after`, `change`.

    Args:
        arms: of all seeds.
        confidence: of the intervals.
    """
    rows = [
        row for seed_arms in gather_seeds(arms).values() for row in _rows(seed_arms, confidence)
    ]
    return question_table(BACKGROUND_LOSS, axis_names(arms), rows)


def _rows(arms: Sequence[BackgroundArm], confidence: float) -> list[dict[str, Any]]:
    losses = [(_losses(arm.before), _losses(arm.after)) for arm in arms]
    names = sorted({name for pair in losses for by_document in pair for name in by_document})
    first, last = (
        np.array([[pair[at].get(name, np.nan) for name in names] for pair in losses])
        for at in (0, 1)
    )
    number = np.repeat(np.arange(len(losses)), len(names))
    documents = Rows.of(np.tile(np.arange(len(names)), len(losses)), seed=number)
    axes = {axis_column(axis): value for axis, value in arms[0].axes.items()}
    rows = []
    for metric, values in zip(METRICS, (first, last, last - first), strict=True):
        numbers = mean_numbers(documents, values.ravel())
        counts = [int(part.weight[0]) for seed in numbers.seeds for part in seed.values()]
        for estimate in numbers.estimates(confidence=confidence):
            rows.append({**axes, "metric": metric, **estimate.row(), "documents": min(counts)})
    return rows


def _losses(folder: Path | None) -> dict[str, float]:
    """Return the mean negative log-likelihood of each document."""
    if folder is None:
        return {}
    return {
        name: -text_memory(statistics).log_probability
        for name, statistics in read_statistics(folder).items()
    }
