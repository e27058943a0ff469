"""Send a run's results to the trackers that also follow its training (`training_runtime.trackers`).

Each tracker gets one more run, in the project `spikein`: the AUC of every detector in every arm
with both ends of its interval, the page's first sentence, and the page, the findings and the
experiment as files. It has the run's own id, so that sending it again adds no other run.

`check_trackers` finds problems before any work; `send_results` never fails. No result depends on
either. Keys and hosts come from the trackers' own environment variables.
"""

import importlib.util
import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from analysis.arm import axis_column
from analysis.arm_labels import arm_words
from analysis.findings import FINDINGS_FILE, contaminated_cohorts, read_table, split_by_cohort
from inject.errors import InputError
from inject.secrets import masked
from spikein.config.arms import axes_of
from spikein.config.yaml_document import read_document
from spikein.runs.index_page import read_sentences
from spikein.runs.record import EXPERIMENT, read_record
from train.execution import Tracker
from train.loop.trackers import FOLDER, PROJECT

_SECONDS = 5.0
"""Time limit for the answer of a tracker's host."""
_MOST_AT_ONCE = 500
"""Metrics of one request to MLflow, which takes 1,000."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of a finished run to send."""

    id: str
    name: str
    headline: str
    page: Path
    numbers: Mapping[str, float]
    """`auc/DETECTOR/ARM`, and the ends of its interval as `auc_low/…` and `auc_high/…`."""
    files: tuple[Path, ...]
    store: Path
    """Folder of TensorBoard's files."""


def check_trackers(trackers: Iterable[Tracker]) -> None:
    """Check that results can be sent when the run ends; others check the installed packages.

    Raises:
        InputError: names the key that is missing, or the host that does not answer.
    """
    for tracker in trackers:
        if tracker in _CHECKS and importlib.util.find_spec(tracker) is not None:
            _CHECKS[tracker]()


def send_results(
    trackers: Iterable[Tracker], folder: Path, page: Path, store: Path
) -> dict[Tracker, str]:
    """Send a run's results; a failure does not affect the run.

    Args:
        trackers: the names of the trackers.
        folder: the run's.
        page: of the run.
        store: the folder of artifacts.

    Returns:
        One sentence per tracker: the place of the results, or why they were not sent.
    """
    sentences: dict[Tracker, str] = {}
    for tracker in dict.fromkeys(trackers):
        try:
            place = _SENDERS[tracker](run_results(folder, page, store))
            sentences[tracker] = f"Results sent to {tracker}: {masked(place)}"
        except Exception as error:
            why = masked(f"{type(error).__name__}: {error}".strip(": "))
            sentences[tracker] = (
                f"Results NOT sent to {tracker} ({why}). The run is complete: {folder}. "
                "Run the same command again to send them."
            )
    return sentences


def run_results(folder: Path, page: Path, store: Path) -> Results:
    """Return the results in a run's folder."""
    record = read_record(folder)
    metrics = read_table(folder, "metrics")
    swept = axes_of(read_document(folder / EXPERIMENT).values)
    axes = tuple(axis for axis in swept if axis_column(axis) in metrics.column_names)
    numbers: dict[str, float] = {}
    for table in contaminated_cohorts(split_by_cohort(metrics, axes)):
        arm = arm_words(table.cohort.axes)
        for detector in table.values("detector"):
            cell = table.reported(detector)
            if cell is None:
                continue
            place = "/".join(part for part in (detector, _plain_name(arm)) if part)
            ends = {"auc": cell.value, "auc_low": cell.low, "auc_high": cell.high}
            numbers |= {f"{end}/{place}": value for end, value in ends.items() if isfinite(value)}
    sentences = read_sentences(folder) or [""]
    return Results(
        id=record.id,
        name=f"{record.name}-{folder.name}",
        headline=sentences[0],
        page=page.absolute(),
        numbers=numbers,
        files=(*sorted(folder.glob("*.html")), folder / FINDINGS_FILE, folder / EXPERIMENT),
        store=store,
    )


def _plain_name(text: str) -> str:
    """Return a text with only the characters that every tracker allows in a metric's name."""
    return re.sub(r"[^\w .:-]+", "", text.replace(", ", " - ").replace("/", "-"))


def _send_to_wandb(results: Results) -> str:
    import wandb

    project = os.environ.get("WANDB_PROJECT", PROJECT)
    about = {"name": results.name, "id": results.id, "job_type": "results"}
    run = wandb.init(project=project, resume="allow", **about)
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


def _send_to_mlflow(results: Results) -> str:
    import mlflow

    client = mlflow.MlflowClient()
    experiment = os.environ.get("MLFLOW_EXPERIMENT_ID")
    if not experiment:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        present = client.get_experiment_by_name(name)
        experiment = present.experiment_id if present else client.create_experiment(name)
    earlier_runs = client.search_runs(
        [experiment], f"tags.`spikein.run` = '{results.id}'", max_results=1
    )
    mark = {"spikein.run": results.id}
    run = (
        earlier_runs[0]
        if earlier_runs
        else client.create_run(experiment, tags=mark, run_name=results.name)
    )
    number = run.info.run_id
    metrics = list(results.numbers.items())
    for start in range(0, len(metrics), _MOST_AT_ONCE):
        mlflow.log_metrics(dict(metrics[start : start + _MOST_AT_ONCE]), step=0, run_id=number)
    client.set_tag(number, "spikein.page", str(results.page))
    client.set_tag(number, "mlflow.note.content", results.headline)
    for path in results.files:
        client.log_artifact(number, str(path))
    client.set_terminated(number)
    return f"{mlflow.get_tracking_uri()}, run {number}"


def _send_to_trackio(results: Results) -> str:
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


def _send_to_tensorboard(results: Results) -> str:
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
    "wandb": _send_to_wandb,
    "mlflow": _send_to_mlflow,
    "trackio": _send_to_trackio,
    "tensorboard": _send_to_tensorboard,
}


def _check_wandb() -> None:
    from requests.utils import get_netrc_auth

    if os.environ.get("WANDB_MODE", "").lower() in ("offline", "dryrun", "disabled"):
        return
    address = os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")
    key = os.environ.get("WANDB_API_KEY") or get_netrc_auth(address)
    login = "WANDB_API_KEY in the environment, or `wandb login` before the run"
    _require_use("Weights & Biases", address, "Set WANDB_MODE=offline", key, login)


def _check_mlflow() -> None:
    address = os.environ.get("MLFLOW_TRACKING_URI", "")
    instead = "Set MLFLOW_TRACKING_URI to a server, or (with the whole of mlflow) to sqlite:///FILE"
    _require_use("MLflow", address, instead)


def _check_trackio() -> None:
    if os.environ.get("TRACKIO_SPACE_ID"):
        from huggingface_hub import get_token

        address = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
        login = "HF_TOKEN in the environment, or `hf auth login` before the run"
        _require_use("TRACKIO_SPACE_ID", address, "Unset it", get_token(), login)
    else:
        address = os.environ.get("TRACKIO_SERVER_URL", "")
        _require_use("trackio's server", address, "Unset TRACKIO_SERVER_URL")


_CHECKS: Mapping[Tracker, Callable[[], None]] = {
    "wandb": _check_wandb,
    "mlflow": _check_mlflow,
    "trackio": _check_trackio,
}


def _require_use(
    tracker: str, address: str, instead: str, key: object = True, login: str | None = None
) -> None:
    """Check a key, then open a connection to the host and nothing more.

    Behind a proxy this cannot be checked.

    Raises:
        InputError: without a key, or if the host does not answer.
    """
    problem = f"{tracker} has no key"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
        direct = parts.scheme not in getproxies() or proxy_bypass(host)
        if key and direct and parts.scheme in ("http", "https"):
            socket.create_connection((host, port), timeout=_SECONDS).close()
        if tracker == "MLflow":
            importlib.import_module("mlflow").MlflowClient()
        if key:
            return
    except Exception as error:
        why, _, _ = str(error).strip().partition(". ")
        problem = f"{tracker} cannot be used at {address or 'its own place'} ({why})"
    raise InputError(
        masked(problem),
        where="training_runtime.trackers",
        allowed=None if key else login,
        hint=f"{instead}, or remove it from training_runtime.trackers: the run's folder has all "
        "results.",
    )
