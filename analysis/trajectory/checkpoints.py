"""Detection along training: AUC at every scored checkpoint, and how it fades after an example.

`progress_table` follows the models: at each checkpoint, members by the copies seen *by then* (`0`:
none yet) against all non-members. `fading_table` follows the examples: every pair of a member and a
checkpoint that has seen it, by the optimiser steps since its last copy, each pair placed among the
non-members at the same checkpoint. Positions of copies are drawn at random, so among pairs with one
copy count the time since the last does not depend on the text. A detector keeps one setting along
the whole training: its default, and the one that the tuning rows of the last checkpoint choose.

Intervals as everywhere (`analysis.intervals`): the pairs of one group of examples count together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arm import (
    MODEL_FREE,
    Arm,
    Axes,
    Cohort,
    DetectorColumn,
    LoadedArm,
    axis_names,
    gather_seeds,
    load_arm,
)
from analysis.auc_cells import PreparedCohort, measure_columns
from analysis.copy_bins import ALL
from analysis.findings import question_table, write_findings
from analysis.intervals.influence import Counts
from analysis.metrics import AUC
from analysis.selection.tuning import choose_settings, reported_columns
from analysis.settings import AnalysisSettings
from analysis.tables import metric_rows, with_selections
from analysis.trajectory.fading import PreparedCheckpoint, fading_rows
from analysis.trajectory.insertion import insertion_rows
from detect.scores.table import default_settings
from inject.settings import plain
from inject.step import Step, StepContext, StepGroup, compared_models, comparing_step
from inject.stream.exposures import EXPOSURES, ExposureSoFar, exposure_until, read_exposures


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One model along the training of one arm."""

    axes: Mapping[str, str]
    """Value of each swept axis by dotted key."""
    seed: int
    """The experiment's seed of this arm."""
    step: int
    """Optimiser steps done; 0 for the model that training began from."""
    tokens: int
    """Tokens fed by then."""
    batch_tokens: int
    """Tokens of one optimiser step."""
    scores: Path
    """Folder of the scores under this model."""
    examples: Path
    """Folder of the examples."""
    defaults: Mapping[str, str]
    """The default setting of each detector."""
    seen: Mapping[str, ExposureSoFar]
    """The copies that this model had seen, by example_id; absent means none. Members of which it
    had seen only parts are omitted: they are neither seen nor unseen."""
    constant_rate: bool = True
    """Whether training makes every step at the same learning rate."""


def trajectory_tables(
    checkpoints: Sequence[Checkpoint],
    settings: AnalysisSettings,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, pa.Table]:
    """Compute the tables of the questions `trajectory`, `fading` and `insertion`.

    Args:
        checkpoints: of all arms and seeds.
        settings: how intervals are made; members that have seen nothing yet are always apart.
        progress: called with the number of cohorts done, and of all.

    Raises:
        InputError: when two checkpoints agree in axes, seed and step.
    """
    settings = settings.model_copy(update={"zero_copies": "apart", "false_positive_rates": ()})
    cohorts: dict[Axes, dict[int, list[Checkpoint]]] = {}
    by_step = gather_seeds(checkpoints, lambda checkpoint: checkpoint.step)
    for (axes, step), seed_checkpoints in by_step.items():
        cohorts.setdefault(axes, {})[step] = seed_checkpoints
    rows: dict[str, list[dict[str, Any]]] = {"trajectory": [], "fading": [], "insertion": []}
    for done, (axes, own_checkpoints) in enumerate(cohorts.items()):
        progress(done, len(cohorts))
        cohort = Cohort(axes, "contaminated")
        work, picked = _prepare_cohort(cohort, own_checkpoints, settings)
        head = cohort.columns()
        for column, selections in picked.items():
            for checkpoint in work:
                progress_rows = _progress_rows(checkpoint, column)
                rows["trajectory"] += with_selections(progress_rows, selections)
            fading = ({**head, **row} for row in fading_rows(work, column, settings))
            rows["fading"] += with_selections(fading, selections)
        rows["insertion"] += insertion_rows(head, work, settings)
    return {name: question_table(name, axis_names(checkpoints), own) for name, own in rows.items()}


def _prepare_cohort(
    cohort: Cohort, by_step: Mapping[int, Sequence[Checkpoint]], settings: AnalysisSettings
) -> tuple[list[PreparedCheckpoint], dict[DetectorColumn, tuple[str, ...]]]:
    loaded = {
        step: [_load(checkpoint) for checkpoint in seed_checkpoints]
        for step, seed_checkpoints in by_step.items()
    }
    last = loaded[max(loaded)]
    picked = {
        column: names
        for column, names in reported_columns(last, choose_settings(last, settings)).items()
        if column.detector not in MODEL_FREE
    }
    work = []
    for step in sorted(loaded):
        arms, seed_checkpoints = loaded[step], by_step[step]
        columns = [column for column in picked if all(column in arm.index for arm in arms)]
        since = [_steps_since(*each) for each in zip(arms, seed_checkpoints, strict=True)]
        whole = PreparedCohort.prepare(cohort, arms, columns, settings)
        work.append(
            PreparedCheckpoint(
                step=step,
                tokens=seed_checkpoints[0].tokens,
                batch_tokens=seed_checkpoints[0].batch_tokens,
                # Without members of which only parts had been seen.
                work=whole.subset(
                    (steps < 0) | (arm.copies > 0) for arm, steps in zip(arms, since, strict=True)
                ),
                since=since,
                constant_rate=all(checkpoint.constant_rate for checkpoint in seed_checkpoints),
            )
        )
    return work, picked


def _load(checkpoint: Checkpoint) -> LoadedArm:
    return load_arm(
        Arm(
            axes=checkpoint.axes,
            seed=checkpoint.seed,
            model="contaminated",
            scores=checkpoint.scores,
            examples=checkpoint.examples,
            copies={name: seen.copies for name, seen in checkpoint.seen.items()},
            defaults=checkpoint.defaults,
        )
    )


def _steps_since(arm: LoadedArm, checkpoint: Checkpoint) -> Counts:
    last = {name: seen.last_step for name, seen in checkpoint.seen.items()}
    ids = [example.example_id for example in arm.examples]
    since = [checkpoint.step - last.get(name, checkpoint.step + 1) for name in ids]
    return np.where(arm.member, np.array(since, dtype=np.int64), -1)


def _progress_rows(checkpoint: PreparedCheckpoint, column: DetectorColumn) -> list[dict[str, Any]]:
    work = checkpoint.work
    if any(column not in arm.index for arm in work.loaded):
        return []
    measured = measure_columns(work, [column])[column]
    rows = []
    for row in metric_rows(work, column, measured):
        if row["metric"] != AUC or (row["copies"] == ALL and row["n_members"] < 2):
            continue
        values = {key: row[key] for key in row if key not in {"model", "variant", "metric"}}
        rows.append({**values, "step": checkpoint.step, "tokens": checkpoint.tokens})
    return rows


_OF_DATASETS = {"dataset_detectors", "replicates", "shards", "shuffles", "seed"}
_UNUSED = {"task_accuracy", "background_tokens", "false_discovery_rate", *_OF_DATASETS}


def trajectory_step(
    checkpoints: Sequence[StepGroup], settings: AnalysisSettings, *, label: str
) -> Step:
    """Compare all checkpoints of an experiment.

    Args:
        checkpoints: their values are `axes` (pairs) and the fields `seed` to `batch_tokens` and
            `constant_rate` of `Checkpoint`; their steps `scores` and `examples`, and `model`, whose
            exposures record what the checkpoint had seen.
        settings: of the analysis.
        label: for people.
    """
    return comparing_step(
        f"{__name__}:build",
        checkpoints,
        kind="trajectory",
        label=label,
        settings={"analysis": plain(settings, exclude=_UNUSED)},
        reading=EXPOSURES,
        libraries=("numpy",),
    )


def build(context: StepContext) -> None:
    """Compare the checkpoints, and write the tables."""
    exposures = cache(read_exposures)
    checkpoints = [
        Checkpoint(
            **values,
            scores=folders["scores"],
            examples=folders["examples"],
            defaults=default_settings(folders["scores"]),
            seen=exposure_until(exposures(folders["model"]), values["step"]),
        )
        for values, folders in compared_models(context.settings["arms"], context.inputs)
    ]
    tables = trajectory_tables(
        checkpoints,
        AnalysisSettings.model_validate(context.settings["analysis"]),
        progress=lambda done, total: context.report(done, total, unit="arms"),
    )
    write_findings(context.out, tables)
