"""Trackers are off by default and receive the values of the training log."""

import importlib.util
import os

import pytest

from inject.errors import InputError
from tests.train.killable import STEPS, train_run
from train.execution import ExecutionSettings, require_installed
from train.loop.log import read_log
from train.loop.trackers import FOLDER, tracking


def test_a_missing_tracker_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    execution = ExecutionSettings(trackers=("wandb",))
    with pytest.raises(InputError, match="the tracker wandb is not installed") as caught:
        require_installed(execution)
    assert "pip install wandb" in str(caught.value)
    with pytest.raises(InputError), tracking(execution, tmp_path, "name"):
        pass


def test_tracker_settings_of_the_user_take_precedence(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", "mine")
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    with tracking(ExecutionSettings(), tmp_path, "name"):
        assert "WANDB_PROJECT" not in os.environ
    with tracking(ExecutionSettings(trackers=("tensorboard",)), tmp_path, "name"):
        assert os.environ["TENSORBOARD_LOGGING_DIR"] == "mine"
        assert os.environ["WANDB_PROJECT"] == "spikein"
    assert os.environ["TENSORBOARD_LOGGING_DIR"] == "mine"
    assert "WANDB_PROJECT" not in os.environ


def test_tensorboard_contains_the_logged_losses(tmp_path, tokenizer):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    store = tmp_path / "store"
    train_run(
        tmp_path / "out",
        store / ".unfinished" / "model-abc",
        tokenizer,
        dropout=False,
        execution=ExecutionSettings(trackers=("tensorboard",)),
    )
    # The run's name is its identity.
    events = EventAccumulator(str(store / FOLDER / "this run"))
    events.Reload()
    rows = read_log(tmp_path / "out")
    scalars = events.Scalars("train/loss")
    assert [event.step for event in scalars] == list(range(1, STEPS + 1))
    assert [event.value for event in scalars] == pytest.approx([row.loss for row in rows], rel=1e-5)
    assert [event.value for event in events.Scalars("train/tokens")] == [row.tokens for row in rows]
    assert "train/tokens_per_second" in events.Tags()["scalars"]


@pytest.mark.slow
@pytest.mark.parametrize("tracker", ["wandb", "mlflow", "trackio"])
def test_two_models_of_one_process_are_separate_tracker_runs(
    tracker, tmp_path, tokenizer, offline_trackers
):
    module = pytest.importorskip(tracker, reason=f"{tracker} is not installed")
    for name in ("one", "two"):
        train_run(
            tmp_path / name,
            tmp_path / "store" / ".unfinished" / f"model-{name}",
            tokenizer,
            dropout=False,
            execution=ExecutionSettings(trackers=(tracker,)),
        )
    if tracker == "mlflow":
        client = module.MlflowClient()
        (experiment,) = [
            experiment for experiment in client.search_experiments() if experiment.name == "spikein"
        ]
        runs = client.search_runs([experiment.experiment_id])
        assert [run.info.status for run in runs] == ["FINISHED"] * 2
        losses = client.get_metric_history(runs[0].info.run_id, "loss")
        assert len(losses) == STEPS
    elif tracker == "wandb":
        assert len(list((tmp_path / "wandb").glob("offline-run-*"))) == 2
        assert module.run is None
    else:
        # A tracker that identifies runs by name continues the run of the same name.
        names = [run.name for run in module.Api().runs("spikein")]
        assert names.count("this run") == 1
