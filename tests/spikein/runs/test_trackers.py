"""Results of a finished run in trackers, read by the trackers themselves if installed."""

import importlib.util
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from inject.errors import InputError
from spikein.runs.trackers import check_trackers, run_results, send_results
from train.loop.trackers import FOLDER


@pytest.fixture
def sent(shared_run, tmp_path):
    """Send the shared run to a tracker; returns the sentence and the results."""

    def send(tracker):
        page = shared_run.folder / "report.html"
        messages = send_results((tracker,), shared_run.folder, page, tmp_path)
        return messages[tracker], run_results(shared_run.folder, page, tmp_path)

    return send


@pytest.mark.slow
def test_sent_results_match_the_findings(sent, shared_run):
    _, results = sent("tensorboard")
    rows = [
        row
        for row in pq.read_table(shared_run.folder / "findings.parquet").to_pylist()
        if (row["question"], row["model"], row["dataset"], row["copies"], row["variant"])
        == ("metrics", "contaminated", "all", "all", "all")
        and row["metric"] == "auc"
    ]
    assert {row["detector"] for row in rows} == {name.split("/")[1] for name in results.numbers}
    tuned = {row["detector"]: row for row in sorted(rows, key=lambda row: row["selection"])}
    for name, row in tuned.items():
        assert results.numbers[f"auc/{name}"] == row["value"]
        assert results.numbers[f"auc_low/{name}"] == row["low"]
        assert results.numbers[f"auc_high/{name}"] == row["high"]
    assert results.headline
    assert all(path.is_file() for path in (results.page, *results.files))


@pytest.mark.slow
def test_tensorboard_shows_the_results(sent, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    message, results = sent("tensorboard")
    assert message == f"Results sent to tensorboard: {tmp_path / FOLDER / 'tiny-1-results'}"
    events = EventAccumulator(str(tmp_path / FOLDER / "tiny-1-results"))
    events.Reload()
    numbers = {name: events.Scalars(name)[0].value for name in events.Tags()["scalars"]}
    assert numbers == pytest.approx(dict(results.numbers), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("tracker", ["wandb", "mlflow", "trackio"])
def test_results_sent_repeatedly_are_one_run_of_the_tracker(
    tracker, sent, tmp_path, offline_trackers
):
    module = pytest.importorskip(tracker, reason=f"{tracker} is not installed")
    for _ in range(2):
        message, results = sent(tracker)
        assert message.startswith(f"Results sent to {tracker}: ")
    if tracker == "mlflow":
        client = module.MlflowClient()
        (experiment,) = [
            experiment for experiment in client.search_experiments() if experiment.name == "spikein"
        ]
        (run,) = client.search_runs([experiment.experiment_id])
        assert run.info.status == "FINISHED"
        assert run.data.metrics == results.numbers
        assert run.data.tags["mlflow.note.content"] == results.headline
        files = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
        assert files == {path.name for path in results.files}
        assert files >= {"report.html", "findings.parquet", "experiment.yaml"}
    elif tracker == "wandb":
        folders = list((tmp_path / "wandb").glob("offline-run-*"))
        assert {folder.name.rpartition("-")[2] for folder in folders} == {results.id}
    else:
        (run,) = [run for run in module.Api().runs("spikein") if run.name == results.name]
        assert run.config["headline"] == results.headline


@pytest.mark.slow
def test_a_failing_tracker_does_no_harm_and_shows_no_key(sent, monkeypatch):
    def refuse(**_):
        raise ConnectionError("403 for https://me:secret-word@host with wandb-key-0123456789")

    monkeypatch.setenv("WANDB_API_KEY", "wandb-key-0123456789")
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=refuse))
    message, _ = sent("wandb")
    assert message.startswith(
        "Results NOT sent to wandb (ConnectionError: 403 for https://***@host"
    )
    assert "wandb-key" not in message
    assert "Run the same command again" in message


def test_offline_trackers_get_no_requests(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    check_trackers(("tensorboard", "wandb"))


@pytest.mark.parametrize(
    ("tracker", "environment", "message"),
    [
        ("wandb", {}, "Weights & Biases has no key.*WANDB_API_KEY in the environment"),
        (
            "wandb",
            {"WANDB_API_KEY": "0123456789", "WANDB_BASE_URL": "http://localhost:9"},
            "Weights & Biases cannot be used at http://localhost:9 .*WANDB_MODE=offline",
        ),
        (
            "mlflow",
            {"MLFLOW_TRACKING_URI": "http://me:word@localhost:9"},
            r"MLflow cannot be used at http://\*\*\*@localhost:9 .*sqlite:///FILE",
        ),
        (
            "mlflow",
            {"MLFLOW_TRACKING_URI": "http://[broken"},
            "MLflow cannot be used at http://.*Invalid IPv6 URL",
        ),
    ],
)
def test_unusable_trackers_are_refused_at_the_start(
    tracker, environment, message, tmp_path, monkeypatch
):
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_BASE_URL", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    with pytest.raises(InputError, match=f"(?s){message}"):
        check_trackers((tracker,))
