"""Steps of trajectories: every checkpoint is scored as a model, and all are compared over training.

The checkpoints are those that training kept (`train.checkpoints`), the trained model, and, where
there is one, the base model as step 0.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from analysis.figures import ReportFigure
from analysis.figures.trajectory import trajectory_figures
from analysis.settings import AnalysisSettings
from analysis.trajectory.checkpoints import Checkpoint, TrajectoryTables, trajectory_tables
from inject.settings import plain
from inject.source_digest import root
from inject.stream.exposures import EXPOSURES, ExposureSoFar, exposure_until, read_exposures
from inject.tables import read_parquet
from spikein.config.schema import Experiment
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.inputs import numbered_folders, numbered_inputs, numbered_reads
from spikein.pipeline.steps.results import figures_record, recorded_figures
from spikein.pipeline.steps.training import ModelNode
from train.loop.schedule import kept_steps, total_steps

_OF_DATASETS = {"dataset_detectors", "replicates", "shards", "shuffles", "seed"}
_UNUSED = {"task_accuracy", "false_discovery_rate", *_OF_DATASETS}
PROGRESS = "trajectory.parquet"
FADING = "fading.parquet"


@dataclass(frozen=True, kw_only=True)
class CheckpointSteps:
    """One checkpoint of the training of one arm, and the scores under it."""

    axes: Mapping[str, str]
    seed: int
    step: int
    """Optimiser steps done; 0 for the base model."""
    tokens: int
    """Tokens fed by then."""
    batch_tokens: int
    constant_rate: bool
    """Whether training makes every step at the same learning rate."""
    scores: Step
    examples: Step
    trained: Step
    """Its exposures say what the model had seen."""


def checkpoint_steps_of(
    experiment: Experiment,
    *,
    axes: Mapping[str, str],
    seed: int,
    trained: Step,
    examples: Step,
    scores: Step,
    base_scores: Step | None,
    score: Callable[[ModelNode], Step | None],
) -> list[CheckpointSteps]:
    """Return the checkpoints of an arm's training; none where training keeps none.

    Args:
        experiment: the arm's.
        axes: its place in the sweep.
        seed: its seed.
        trained: its training.
        examples: its pool.
        scores: of the trained model.
        base_scores: of the model that training starts from; None where nothing is known of it.
        score: makes the scores of another model.
    """
    train, tokens = experiment.train, experiment.corpus.tokens
    kept = kept_steps(train, tokens)
    if not kept:
        return []
    total = total_steps(train, tokens)
    fed = train.epochs * (tokens // train.context) * train.context
    nodes = {step: score(ModelNode(step=trained, checkpoint=step)) for step in kept}
    found = {**({0: base_scores} if base_scores else {}), **nodes, total: scores}
    return [
        CheckpointSteps(
            axes=axes,
            seed=seed,
            step=step,
            tokens=min(step * train.batch_tokens, fed),
            batch_tokens=train.batch_tokens,
            constant_rate=train.schedule == "constant" and train.warmup == 0,
            scores=of,
            examples=examples,
            trained=trained,
        )
        for step, of in found.items()
        if of is not None
    ]


def trajectory_step(
    checkpoints: Sequence[CheckpointSteps], settings: AnalysisSettings, *, label: str
) -> Step:
    """Compare all checkpoints of an experiment, and draw them."""
    inputs = numbered_inputs(
        [
            {"scores": one.scores, "examples": one.examples, "model": one.trained}
            for one in checkpoints
        ]
    )

    def build(context: StepContext) -> None:
        found = trajectory_tables(
            _opened(checkpoints, context.inputs),
            settings,
            progress=lambda done, total: context.report(done, total, unit="arms"),
        )
        pq.write_table(found.progress, context.out / PROGRESS)
        pq.write_table(found.fading, context.out / FADING)
        axes = list(dict.fromkeys(key for one in checkpoints for key in one.axes))
        figures_record(context.out, trajectory_figures(context.out, found, axes))

    return Step(
        kind="trajectory",
        label=label,
        settings={
            "analysis": plain(settings, exclude=_UNUSED),
            "checkpoints": [
                {
                    "axes": dict(one.axes),
                    "seed": one.seed,
                    "step": one.step,
                    "tokens": one.tokens,
                    "constant_rate": one.constant_rate,
                }
                for one in checkpoints
            ],
        },
        inputs=inputs,
        libraries=("numpy", "matplotlib"),
        code=(root(build),),
        reads=numbered_reads(inputs, "model", EXPOSURES),
        build=build,
    )


class StoredTrajectory(NamedTuple):
    """What `trajectory_step` wrote."""

    tables: TrajectoryTables
    figures: list[ReportFigure]


def load_trajectory(folder: Path) -> StoredTrajectory:
    """Read a trajectory's artifact."""
    tables = TrajectoryTables(read_parquet(folder / PROGRESS), read_parquet(folder / FADING))
    return StoredTrajectory(tables, recorded_figures(folder))


def _opened(checkpoints: Sequence[CheckpointSteps], inputs: Mapping[str, Any]) -> list[Checkpoint]:
    exposures: dict[Path, Any] = {}
    found = []
    for number, one in enumerate(checkpoints):
        folders = numbered_folders(inputs, number)
        path = folders["model"]
        if path not in exposures:
            exposures[path] = read_exposures(path)
        seen: dict[str, ExposureSoFar] = exposure_until(exposures[path], one.step)
        found.append(
            Checkpoint(
                axes=one.axes,
                seed=one.seed,
                step=one.step,
                tokens=one.tokens,
                batch_tokens=one.batch_tokens,
                constant_rate=one.constant_rate,
                scores=folders["scores"],
                examples=folders["examples"],
                defaults=dict(one.scores.settings["defaults"]),
                seen=seen,
            )
        )
    return found
