"""Steps as tasks of a Ray cluster: an existing one, or one on this machine that ends with the run.

All machines share the folder of the store and have spikein installed. Ray assigns each step its
cores and GPUs. A step whose machine or process dies is retried elsewhere; a training step then
resumes from its last restart checkpoint. If the cluster's head is gone, Ray would abort this
process after a minute; the run ends before that with advice. Install Ray with
`pip install 'spikein[ray]'`.
"""

import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from inject.errors import InputError, SpikeinError
from inject.secrets import masked
from inject.step import Step
from spikein.config.executor_settings import RaySettings
from spikein.executors.graph_file import write_graph
from spikein.executors.graph_run import GraphRun
from spikein.executors.scheduling import SideBySide, require_known_kinds
from spikein.executors.task import THREAD_VARIABLES, Task, TaskEnd, python_path, run_task
from spikein.pipeline.graph import Graph
from spikein.store.filesystem import delete_tree

if TYPE_CHECKING:
    from ray import ObjectRef

_MOST_PENDING = 1000
_GIGABYTE = 10**9
_STOP_SECONDS = 60.0
_ANSWER_SECONDS = 10.0
_HEAD_SECONDS = 20.0
"""Maximum silence of the head; Ray aborts this process after 60."""
_FOLDER, _IN_USE = "spikein-ray-", "in-use.lock"


class Ray(SideBySide):
    """Tasks of a Ray cluster, an existing one or one started on this machine."""

    def __init__(self, settings: RaySettings | None = None) -> None:
        self.settings: RaySettings = settings or RaySettings()

    def require(self, graph: Graph) -> None:
        """Check that Ray is installed, and that all kinds with requests exist."""
        _import_ray()
        require_known_kinds(self.settings, graph)

    def pool(self, run: GraphRun) -> "_Cluster":
        """Return the cluster of a run."""
        return _Cluster(run, self.settings)


class _Cluster:
    """The pool of `spikein.executors.scheduling`, out of a Ray cluster."""

    def __init__(self, run: GraphRun, settings: RaySettings) -> None:
        self._ray = _import_ray()
        self._settings = settings
        self._graph = write_graph(run.graph, run.store, run.status.folder)
        self._running: dict[Any, str] = {}
        self._folder: FileLock | None = None
        self._own = not self._ray.is_initialized()
        try:
            if self._own:
                self._connect()
            self._head = _head_address(self._ray)
            self._answered = time.monotonic()
            self._require_room(run.graph)
        except BaseException:
            self.close(stop=False)
            raise
        # The schedule retries, counts and reports attempts, so Ray must not retry.
        self._build = self._ray.remote(max_retries=0)(_build)

    def room(self) -> int:
        """Return the number of further steps that may wait at the cluster."""
        return _MOST_PENDING - len(self._running)

    def begin(self, steps: Sequence[tuple[Step, int]]) -> None:
        """Submit steps to the cluster with their requests."""
        for step, attempt in steps:
            request = self._settings.request(step.kind)
            cpus = request.cpus or 1
            task = Task(digest=step.digest, graph=self._graph, threads=cpus, attempt=attempt)
            memory = request.memory_gb
            reference: ObjectRef[dict[str, Any]] = self._build.options(
                name=step.name,
                num_cpus=cpus,
                num_gpus=request.gpus or 0,
                memory=memory * _GIGABYTE if memory else None,
                # No key of the user's environment is among them.
                runtime_env={
                    "env_vars": {
                        **dict.fromkeys(THREAD_VARIABLES, str(cpus)),
                        "PYTHONPATH": python_path(),
                    }
                },
            ).remote(task)
            self._running[reference] = step.digest

    def wait(self, seconds: float) -> Iterable[TaskEnd]:
        """Return the steps that ended.

        Raises:
            SpikeinError: when the cluster's head does not answer.
        """
        if not self._running:
            return []
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        if self._head_lost():
            raise SpikeinError(
                f"the head of the Ray cluster ({self._head}) has not answered for "
                f"{_HEAD_SECONDS:.0f} seconds; the steps that ran are lost. Finished steps and "
                "checkpoints are kept: start the cluster again, and run the same command to resume."
            )
        if ready:
            ready, _ = self._ray.wait(
                list(self._running), num_returns=len(self._running), timeout=0
            )
        return [self._end(reference) for reference in ready]

    def close(self, *, stop: bool) -> None:
        """Leave the cluster; with `stop`, end the steps that run first."""
        try:
            # Without a head nothing can be ended, and Ray would wait for it until it aborts.
            if stop and self._running and not self._head_lost():
                waiting = list(self._running)
                for reference in waiting:
                    # Like Ctrl-C: the step ends, and its half-written files are removed.
                    self._ray.cancel(reference, force=False)
                self._ray.wait(waiting, num_returns=len(waiting), timeout=_STOP_SECONDS)
        finally:
            if self._own:
                self._ray.shutdown()
            if self._folder is not None:
                delete_tree(Path(self._folder.lock_file).parent)
                self._folder.release()

    def _head_lost(self) -> bool:
        """Return whether the cluster's head has not answered for some time."""
        if time.monotonic() - self._answered > _HEAD_SECONDS / 4:
            with suppress(InputError):
                _require_answer(self._head)
                self._answered = time.monotonic()
        return time.monotonic() - self._answered > _HEAD_SECONDS

    def _end(self, reference: Any) -> TaskEnd:
        digest = self._running.pop(reference)
        errors = self._ray.exceptions
        try:
            return TaskEnd(**self._ray.get(reference))
        except errors.RayTaskError as error:
            # A step's own errors are part of its result; this error prevented its start.
            return TaskEnd(digest=digest, state="failed", problem=masked(str(error.cause)))
        except errors.RayError as error:
            error_lines = str(error).strip().splitlines()
            reason = masked(error_lines[0]) if error_lines else type(error).__name__
            problem = f"the task was lost: {reason}"
            return TaskEnd(digest=digest, state="lost", problem=problem)

    def _connect(self) -> None:
        address = self._settings.address or os.environ.get("RAY_ADDRESS")
        _require_answer(address)
        before = signal.getsignal(signal.SIGTERM)
        own: dict[str, Any] = {}
        if not address:
            self._folder = _session_folder()
            folder = str(Path(self._folder.lock_file).parent)
            own = {"include_dashboard": False, "_temp_dir": folder}
        try:
            self._ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level="error",
                namespace="spikein",
                **own,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(
                f"no Ray cluster answers: {masked(str(error).strip())}",
                where=f"executor.address {address}" if address else "executor ray",
                hint="Remove executor.address to start one on this machine.",
            ) from error
        finally:
            # Ray replaces our handler, which ends running steps, by its own.
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, before or signal.SIG_DFL)

    def _require_room(self, graph: Graph) -> None:
        """Check that some machine can satisfy the request of each kind of step.

        A task with a larger request would wait forever.
        """
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        for kind in dict.fromkeys(step.kind for step in graph.steps):
            request = self._settings.request(kind)
            requested = {"CPU": request.cpus or 0, "GPU": request.gpus or 0}
            if not any(
                all(node.get(name, 0) >= count for name, count in requested.items())
                for node in nodes
            ):
                capacities = "; ".join(
                    f"{node.get('CPU', 0):g} CPUs and {node.get('GPU', 0):g} GPUs" for node in nodes
                )
                raise InputError(
                    f"a step of kind {kind} requests {requested['CPU']} CPUs and "
                    f"{requested['GPU']} GPUs, which no machine of the cluster has: {capacities}",
                    where="executor",
                    hint="Lower executor.cpus, executor.gpus or executor.steps.",
                )


def _session_folder() -> FileLock:
    """Create a folder for Ray's files, for a cluster that ends with this process.

    Folders left by killed processes are removed.

    Returns:
        The lock in it, which marks it as used.
    """
    # Ray's own place: the paths of its sockets must be short.
    parent = Path(os.environ.get("RAY_TMPDIR", "/tmp"))
    parent.mkdir(parents=True, exist_ok=True)
    for stale in parent.glob(f"{_FOLDER}*/{_IN_USE}"):
        with suppress(Timeout, OSError), FileLock(stale).acquire(timeout=0):
            delete_tree(stale.parent)
    lock = FileLock(Path(tempfile.mkdtemp(prefix=_FOLDER, dir=parent)) / _IN_USE)
    lock.acquire(timeout=0)
    return lock


def _head_address(ray: Any) -> str:
    """Return `HOST:PORT` of the cluster's head; empty for a client, which knows none."""
    with suppress(AttributeError, RuntimeError):
        return str(ray.get_runtime_context().gcs_address)
    return ""


def _require_answer(address: str | None) -> None:
    """Check that something listens at `HOST:PORT`; Ray itself would try for minutes.

    Raises:
        InputError: when nothing does.
    """
    host, _, port = (address or "").rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
    except OSError as error:
        raise InputError(
            f"no Ray cluster answers: {error.strerror or error}",
            where=f"executor.address {address}",
            hint="Leave executor.address out to start one on this machine.",
        ) from None


def _build(task: Task) -> dict[str, Any]:
    """Build one step on a machine of the cluster."""
    from dataclasses import asdict

    return asdict(run_task(task, "ray"))


def _import_ray() -> Any:
    """Return the module `ray`, which sends no statistics of use from here.

    Raises:
        InputError: when it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise InputError(
            f"Ray cannot be imported: {error}",
            where="executor ray",
            hint=f"{sys.executable} -m pip install 'spikein[ray]'",
        ) from None
    return ray
