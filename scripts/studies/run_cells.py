"""The arms of a finished run with their sizes and rates, and their AUCs by number of copies.

Only the run's folder is read, except for the time of scoring, which is in the store. Scores are
those of default settings on `test` rows; non-members are the withheld side.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isclose
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arm import arm_label, axis_column, find_arm
from analysis.intervals.influence import Counts, Floats
from analysis.intervals.rows import Rows, number_groups
from inject.errors import InputError, did_you_mean
from inject.stream.exposures import seen_copy_counts
from scripts.studies.laws import DoseCells, dose_cells
from spikein.api.experiment import read
from spikein.api.finished_run import Run
from spikein.runs.folder import linked_artifacts
from spikein.store.manifest import read_manifest
from train.models.model_sizes import known_sizes
from train.models.shapes import parameter_count
from train.settings import ModelSettings

CONTAMINATED = "contaminated"
_SAME_SIZE = 0.05
"""Relative difference up to which two numbers of parameters count as one size."""


@dataclass(frozen=True, kw_only=True)
class SizedArm:
    """One arm of a run, all its seeds together."""

    label: str
    """Its name, or that of its axes; `contaminated` in a run of one arm."""
    columns: dict[str, str]
    """Its values of the swept axes, by their columns in tables."""
    parameters: int | None
    """None if they are unknown: of a pretrained model that is not listed."""
    rate: float
    """Learning rate."""

    def has(self, parameters: float, rate: float) -> bool:
        """Return whether it has this size and this learning rate."""
        same_size = self.parameters is not None and isclose(
            self.parameters, parameters, rel_tol=_SAME_SIZE
        )
        return same_size and isclose(self.rate, rate, rel_tol=1e-6)


def read_arguments(
    description: str | None,
    arguments: Sequence[str] | None,
    *,
    detectors: Sequence[str] = ("min_k", "reference"),
) -> argparse.Namespace:
    """Return `run`, the list of `detectors`, and `into`, the folder for tables or None."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="name or folder of a finished run")
    names = {"type": lambda text: text.split(","), "default": list(detectors)}
    usual = ",".join(detectors) or "all"
    parser.add_argument("--detectors", help=f"with commas (default: {usual})", **names)
    parser.add_argument("--into", type=Path, help="folder for data/ and images/, such as docs")
    return parser.parse_args(arguments)


def sized_arms(run: Run) -> list[SizedArm]:
    """Return the arms of a run, in its order."""
    arms = {}
    for arm in read(run.settings).arms:
        label = arm.name or arm_label(arm.labels.items()) or CONTAMINATED
        if label not in arms:
            arms[label] = SizedArm(
                label=label,
                columns={axis_column(axis): value for axis, value in arm.labels.items()},
                parameters=_parameters(arm.experiment.model),
                rate=arm.experiment.train.lr,
            )
    return list(arms.values())


def _parameters(model: ModelSettings) -> int | None:
    sizes = known_sizes(model)
    return None if sizes is None else parameter_count(sizes.shape, sizes.vocabulary)


def without_arms(
    arms: Sequence[SizedArm], leave_out: Sequence[str], *, place: str
) -> list[SizedArm]:
    """Return the arms that no text of `leave_out` names.

    Raises:
        InputError: for a text that names no arm.
    """
    labels = [arm.label for arm in arms]
    left_out = {find_arm(text, labels, place=place) for text in leave_out}
    return [arm for arm in arms if arm.label not in left_out]


def arm_cells(run: Run, arm: SizedArm, detector: str) -> DoseCells:
    """Return the AUCs of one detector in one arm by number of copies.

    Raises:
        InputError: when its size is unknown, or the detector did not score it.
    """
    if arm.parameters is None:
        raise InputError(
            "the number of parameters of its model is unknown",
            where=f"{run.folder}, arm {arm.label!r}",
            allowed="a shape with `tokenizer.vocab_size`, or a pretrained model of known size",
            hint="Leave out the arm with --leave-out.",
        )
    rows, scores, copies = scored_rows(run, arm, detector)
    return dose_cells(rows, scores, copies, parameters=arm.parameters, rate=arm.rate)


def scored_rows(run: Run, arm: SizedArm, detector: str) -> tuple[Rows, Floats, Counts]:
    """Return the test rows of an arm under all seeds, their scores and copies.

    Raises:
        InputError: when the detector did not score it.
    """
    frame = scored_frame(run, arm, detector)
    return frame_rows(frame), frame["score"].to_numpy(dtype=float), frame["copies"].to_numpy()


def frame_rows(frame: pd.DataFrame) -> Rows:
    """Return the rows of `scored_frame` for the analysis."""
    member = frame["member"].to_numpy(dtype=bool)
    return Rows(
        seed=frame["seed"].to_numpy(),
        dataset=frame["dataset"].to_numpy(dtype=object),
        group=number_groups(frame["dataset"], frame["group"]),
        member=member,
        nonmember=~member,
    )


def scored_frame(
    run: Run, arm: SizedArm, detector: str, *, selection: str = "default"
) -> pd.DataFrame:
    """Return the test rows of an arm by seed: their scores, copies, and lengths in characters.

    Raises:
        InputError: when the detector did not score it.
    """
    place = {**arm.columns, "model": CONTAMINATED, "detector": detector, "selection": selection}
    scores = _where(run.scores, place).select(["seed", "example_id", "score"]).to_pandas()
    if scores.empty:
        names = run.scores["detector"].unique().to_pylist()
        raise InputError(
            f"{detector!r} scored no text of this arm.{did_you_mean(detector, names)}",
            where=f"{run.folder}, arm {arm.label!r}",
            allowed=", ".join(names),
        )
    # Present if pools differ between arms.
    pool_axes = arm.columns.keys() & {*run.examples.column_names}
    pool = _where(run.examples, {axis: arm.columns[axis] for axis in pool_axes})
    named = ["seed", "example_id", "dataset", "group", "side", "split"]
    examples = pool.select(named).append_column("length", pc.utf8_length(pool["text"]))
    rows = scores.merge(examples.to_pandas(), on=["seed", "example_id"], validate="many_to_one")
    rows = rows[rows["split"] == "test"].sort_values(["seed", "example_id"])
    rows = rows.assign(member=rows["side"] == "member").reset_index(drop=True)
    copies = np.array(_copies(run, arm, rows), dtype=np.int64)
    return rows.assign(copies=np.where(rows["member"], copies, 0))


def _copies(run: Run, arm: SizedArm, scored: pd.DataFrame) -> list[int]:
    """Return the copies of each row that its model read whole."""
    exposures = _where(run.exposures, arm.columns)
    counts = {
        seed: seen_copy_counts(_where(exposures, {"seed": seed}))
        for seed in scored["seed"].unique().tolist()
    }
    pairs = zip(scored["seed"], scored["example_id"], strict=True)
    return [counts[seed].get(example_id, 0) for seed, example_id in pairs]


def _where(table: pa.Table, place: dict[str, str]) -> pa.Table:
    for column, value in place.items():
        table = table.filter(pc.equal(table[column], value))
    return table


def first_scored(run: Run, arm: SizedArm) -> datetime | None:
    """Return the time when the first scores of an arm were made; None if the store is gone."""
    folders = _where(run.models, {**arm.columns, "role": CONTAMINATED})["scores"].to_pylist()
    by_name = {"/".join(path.parts[-2:]): path for path in linked_artifacts(run.folder)}
    paths = [by_name[name] for name in folders if name in by_name]
    if not paths or not all(path.is_dir() for path in paths):
        return None
    return min(datetime.fromisoformat(read_manifest(path).created) for path in paths)
