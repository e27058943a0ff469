"""The step of trajectories: detection at every checkpoint, compared over training.

The checkpoints are those that training kept (`train.checkpoints`), the trained model, and, where
there is one, the base model as step 0.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq

from analysis.settings import AnalysisSettings
from analysis.trajectory.checkpoints import Checkpoint, TrajectoryTables, trajectory_tables
from detect.scores.table import default_settings
from inject.settings import plain
from inject.step import (
    Step,
    StepContext,
    StepGroup,
    numbered_folders,
    numbered_inputs,
    numbered_reads,
)
from inject.stream.exposures import EXPOSURES, exposure_until, read_exposures
from inject.tables import read_parquet

_OF_DATASETS = {"dataset_detectors", "replicates", "shards", "shuffles", "seed"}
_UNUSED = {"task_accuracy", "false_discovery_rate", *_OF_DATASETS}
PROGRESS = "trajectory.parquet"
FADING = "fading.parquet"


def trajectory_step(
    checkpoints: Sequence[StepGroup], settings: AnalysisSettings, *, label: str
) -> Step:
    """Compare all checkpoints of an experiment.

    Args:
        checkpoints: their values are `axes` (pairs) and the fields `seed` to `batch_tokens` and
            `constant_rate` of `Checkpoint`; their steps `scores` and `examples`, and `model`, whose
            exposures say what the checkpoint had seen.
        settings: of the analysis.
        label: for people.
    """
    inputs = numbered_inputs([one.steps for one in checkpoints])
    return Step(
        kind="trajectory",
        label=label,
        function=f"{__name__}:build",
        settings={
            "analysis": plain(settings, exclude=_UNUSED),
            "checkpoints": [dict(one.values) for one in checkpoints],
        },
        inputs=inputs,
        libraries=("numpy",),
        reads=numbered_reads(inputs, "model", EXPOSURES),
    )


def build(context: StepContext) -> None:
    """Compare the checkpoints, and write both tables."""
    exposures = cache(read_exposures)
    checkpoints = []
    for number, values in enumerate(context.settings["checkpoints"]):
        folders = numbered_folders(context.inputs, number)
        checkpoints.append(
            Checkpoint(
                **{**values, "axes": dict(values["axes"])},
                scores=folders["scores"],
                examples=folders["examples"],
                defaults=default_settings(folders["scores"]),
                seen=exposure_until(exposures(folders["model"]), values["step"]),
            )
        )
    found = trajectory_tables(
        checkpoints,
        AnalysisSettings.model_validate(context.settings["analysis"]),
        progress=lambda done, total: context.report(done, total, unit="arms"),
    )
    pq.write_table(found.progress, context.out / PROGRESS)
    pq.write_table(found.fading, context.out / FADING)


def read_trajectory(folder: Path) -> TrajectoryTables:
    """Read a trajectory's artifact."""
    return TrajectoryTables(read_parquet(folder / PROGRESS), read_parquet(folder / FADING))
