"""What a run found, sent to the trackers that also follow its training (`execution.trackers`).

Each tracker gets one run more, in the project `spikein`: the AUC of every detector in every arm
with both ends of its interval, the page's first sentence, and the page, the findings and the
experiment as files. It has the run's own id, so that sending it again adds no other run.

`check_trackers` refuses before any work what would fail after it; `send_results` never fails. No
result depends on either. Keys and hosts come from the trackers' own environment variables.
"""

import importlib.util
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from analysis.arm import axis_column
from analysis.arm_words import arm_words
from analysis.findings import FINDINGS_FILE, read_table
from analysis.metrics_table import contaminated_cohorts, split_by_cohort
from analysis.selection.ranking import reported_cell
from inject.errors import InputError
from inject.secrets import masked
from spikein.config.yaml_document import read_document
from spikein.runs.index_page import SUMMARY
from spikein.runs.record import EXPERIMENT, read_record
from train.execution import Tracker
from train.loop.trackers import FOLDER, PROJECT

_WITHOUT = "or leave {} out of execution.trackers: the run's folder holds all of it."
_SECONDS = 5.0
"""Within which a tracker's host has to answer."""
_MOST_AT_ONCE = 500
"""Metrics of one request to MLflow, which takes 1,000."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """What is sent of a finished run."""

    id: str
    name: str
    headline: str
    page: Path
    numbers: Mapping[str, float]
    """`auc/DETECTOR/ARM`, and the ends of its interval as `auc_low/…` and `auc_high/…`."""
    files: tuple[Path, ...]
    store: Path
    """Where TensorBoard's files lie."""


def check_trackers(trackers: Iterable[Tracker]) -> None:
    """Check that results can be sent when the run ends; what is not installed is told elsewhere.

    Raises:
        InputError: names the key that is missing, or the host that does not answer.
    """
    for tracker in trackers:
        if tracker in _CHECKS and importlib.util.find_spec(tracker) is not None:
            _CHECKS[tracker]()


def send_results(
    trackers: Iterable[Tracker], folder: Path, page: Path, store: Path
) -> dict[Tracker, str]:
    """Send what a run found; whatever goes wrong, the run is as it was.

    Args:
        trackers: where to.
        folder: the run's.
        page: of the run.
        store: the folder of artifacts.

    Returns:
        By tracker a sentence: where the results are, or why they are not there.
    """
    said: dict[Tracker, str] = {}
    for tracker in dict.fromkeys(trackers):
        try:
            place = _SENDERS[tracker](run_results(folder, page, store))
            said[tracker] = f"Results sent to {tracker}: {masked(place)}"
        except Exception as error:
            why = masked(f"{type(error).__name__}: {error}".strip(": "))
            said[tracker] = (
                f"Results NOT sent to {tracker} ({why}). The run is whole: {folder}. "
                "Run the same command again to send them."
            )
    return said


def run_results(folder: Path, page: Path, store: Path) -> Results:
    """Return what is sent of a run's folder."""
    record = read_record(folder)
    metrics = read_table(folder, "metrics")
    swept = read_document(folder / EXPERIMENT).values.get("sweep") or ()
    axes = tuple(axis for axis in swept if axis_column(axis) in metrics.column_names)
    numbers: dict[str, float] = {}
    for table in contaminated_cohorts(split_by_cohort(metrics, axes)):
        arm = arm_words(table.cohort.axes)
        for detector in table.values("detector"):
            cell = reported_cell(table, detector)
            if cell is None:
                continue
            place = "/".join(part for part in (detector, _plain(arm)) if part)
            ends = {"auc": cell.value, "auc_low": cell.low, "auc_high": cell.high}
            numbers |= {f"{end}/{place}": value for end, value in ends.items() if isfinite(value)}
    sentences = json.loads((folder / SUMMARY).read_text(encoding="utf-8")).get("sentences") or [""]
    return Results(
        id=record.id,
        name=f"{record.name}-{folder.name}",
        headline=sentences[0],
        page=page.absolute(),
        numbers=numbers,
        files=(*sorted(folder.glob("*.html")), folder / FINDINGS_FILE, folder / EXPERIMENT),
        store=store,
    )


def _plain(text: str) -> str:
    """Return a text of those signs that every tracker takes in the name of a metric."""
    return re.sub(r"[^\w .:-]+", "", text.replace(", ", " - ").replace("/", "-"))


def _to_wandb(results: Results) -> str:
    import wandb

    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        name=results.name,
        id=results.id,
        resume="allow",
        job_type="results",
    )
    try:
        run.log(dict(results.numbers))
        run.summary.update({"headline": results.headline, "page": str(results.page)})
        artifact = wandb.Artifact(f"{results.name}-results", type="results")
        for path in results.files:
            artifact.add_file(str(path))
        run.log_artifact(artifact)
        return str(run.url or run.dir)
    finally:
        run.finish()


def _to_mlflow(results: Results) -> str:
    import mlflow
    from mlflow.entities import Metric, RunTag

    client = mlflow.MlflowClient()
    experiment = os.environ.get("MLFLOW_EXPERIMENT_ID")
    if not experiment:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        known = client.get_experiment_by_name(name)
        experiment = known.experiment_id if known else client.create_experiment(name)
    same = client.search_runs([experiment], f"tags.`spikein.run` = '{results.id}'", max_results=1)
    mark = {"spikein.run": results.id}
    run = same[0] if same else client.create_run(experiment, tags=mark, run_name=results.name)
    now = int(time.time() * 1000)
    metrics = [Metric(name, value, now, 0) for name, value in results.numbers.items()]
    for start in range(0, len(metrics), _MOST_AT_ONCE):
        client.log_batch(run.info.run_id, metrics=metrics[start : start + _MOST_AT_ONCE])
    tags = {"spikein.page": str(results.page), "mlflow.note.content": results.headline}
    client.log_batch(run.info.run_id, tags=[RunTag(name, text) for name, text in tags.items()])
    for path in results.files:
        client.log_artifact(run.info.run_id, str(path))
    client.set_terminated(run.info.run_id)
    return f"{mlflow.get_tracking_uri()}, run {run.info.run_id}"


def _to_trackio(results: Results) -> str:
    import trackio

    about = {"headline": results.headline, "page": str(results.page), "run": results.id}
    trackio.init(project=PROJECT, name=results.name, resume="allow", config=about, embed=False)
    try:
        trackio.log(dict(results.numbers))
        for path in results.files:
            trackio.log_artifact(str(path), name=f"{results.name}-{path.stem}", type="results")
    finally:
        trackio.finish()
    return f"project {PROJECT}, run {results.name}"


def _to_tensorboard(results: Results) -> str:
    from torch.utils.tensorboard import SummaryWriter

    parent = Path(os.environ.get("TENSORBOARD_LOGGING_DIR") or results.store / FOLDER)
    folder = str(parent / f"{results.name}-results")
    with SummaryWriter(folder) as writer:
        for name, value in results.numbers.items():
            writer.add_scalar(name, value, 0)
        writer.add_text("headline", results.headline, 0)
        writer.add_text("page", str(results.page), 0)
    return folder


_SENDERS: Mapping[Tracker, Callable[[Results], str]] = {
    "wandb": _to_wandb,
    "mlflow": _to_mlflow,
    "trackio": _to_trackio,
    "tensorboard": _to_tensorboard,
}


def _check_wandb() -> None:
    from requests.utils import get_netrc_auth

    if os.environ.get("WANDB_MODE", "").lower() in ("offline", "dryrun", "disabled"):
        return
    address = os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")
    if not os.environ.get("WANDB_API_KEY") and not get_netrc_auth(address):
        raise InputError(
            "Weights & Biases has no key",
            where="execution.trackers",
            allowed="WANDB_API_KEY in the environment, or `wandb login` before the run",
            hint=f"Or WANDB_MODE=offline, {_WITHOUT.format('wandb')}",
        )
    _require_answer("Weights & Biases", address, "Set WANDB_MODE=offline", "wandb")


def _check_mlflow() -> None:
    address = os.environ.get("MLFLOW_TRACKING_URI", "")
    instead = "Set MLFLOW_TRACKING_URI to a server, or (with the whole of mlflow) to sqlite:///FILE"
    _require_answer("MLflow", address, instead, "mlflow")
    import mlflow

    try:
        mlflow.MlflowClient()
    except Exception as error:
        why, _, _ = masked(str(error)).strip().partition(". ")
        raise InputError(
            f"MLflow cannot write to {masked(address) or 'its own place'} ({why})",
            where="execution.trackers",
            hint=f"{instead}, {_WITHOUT.format('mlflow')}",
        ) from None


def _check_trackio() -> None:
    if not os.environ.get("TRACKIO_SPACE_ID"):
        server = os.environ.get("TRACKIO_SERVER_URL", "")
        _require_answer("trackio's server", server, "Unset TRACKIO_SERVER_URL", "trackio")
        return
    from huggingface_hub import get_token

    if get_token() is None:
        raise InputError(
            "trackio has no token for the space that TRACKIO_SPACE_ID names",
            where="execution.trackers",
            allowed="HF_TOKEN in the environment, or `hf auth login` before the run",
            hint=f"Unset TRACKIO_SPACE_ID, {_WITHOUT.format('trackio')}",
        )
    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    _require_answer("trackio's space", address, "Unset TRACKIO_SPACE_ID", "trackio")


_CHECKS: Mapping[Tracker, Callable[[], None]] = {
    "wandb": _check_wandb,
    "mlflow": _check_mlflow,
    "trackio": _check_trackio,
}


def _require_answer(who: str, address: str, instead: str, tracker: Tracker) -> None:
    """Ask a host for a connection, and nothing more; behind a proxy nothing can be said.

    Raises:
        InputError: it does not answer.
    """
    if not address.startswith(("http://", "https://")):
        return
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
        if parts.scheme in getproxies() and not proxy_bypass(host):
            return
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except (OSError, ValueError) as error:
        raise InputError(
            f"{who} does not answer at {masked(address)} ({error})",
            where="execution.trackers",
            hint=f"{instead}, {_WITHOUT.format(tracker)}",
        ) from None
