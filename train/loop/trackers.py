"""Trackers: TensorBoard, Weights & Biases, trackio, MLflow, through the Trainer's own callbacks.

Off by default; `log.parquet` is authoritative. A tracker's run has the name of the model's folder,
its project is `spikein`; keys and hosts come from each tracker's own environment variables.
TensorBoard's files are in the store, in `.trackers/NAME`, or in `TENSORBOARD_LOGGING_DIR`.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from train.execution import ExecutionSettings, require_installed

PROJECT = "spikein"
FOLDER = ".trackers"
_ENDS = {"wandb": "finish", "trackio": "finish", "mlflow": "end_run"}
"""Functions that end a tracker's run."""


@contextmanager
def tracking(execution: ExecutionSettings, unfinished: Path | None, name: str) -> Iterator[None]:
    """Set the trackers' folders while a model trains, and end their runs afterwards.

    Args:
        execution: names the trackers.
        unfinished: the run's folder of unfinished work, `<store>/.unfinished/NAME`; None keeps
            TensorBoard's files in the current folder.
        name: name of the run.
    """
    if not execution.trackers:
        yield
        return
    require_installed(execution)
    place = Path.cwd() if unfinished is None else unfinished.parent.parent
    with _environment(
        {
            "TENSORBOARD_LOGGING_DIR": str(place / FOLDER / (name or "run")),
            "WANDB_PROJECT": PROJECT,
            "MLFLOW_EXPERIMENT_NAME": PROJECT,
        }
    ):
        try:
            yield
        finally:
            # Otherwise the next model of this process would continue the same run.
            for tracker, end in _ENDS.items():
                if tracker in execution.trackers and tracker in sys.modules:
                    # A run already ended by the Trainer raises an error; no tracker error may fail
                    # a model.
                    with suppress(Exception):
                        getattr(sys.modules[tracker], end)()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Temporarily set variables that the user has not set."""
    new = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)
