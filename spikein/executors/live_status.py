"""What becomes of each step while a run goes on, in a file that `spikein status` reads.

`<store>/.runs/<start>-<host>-<process>/` belongs to one run: `status.json`, the steps' logs, the
graph for its workers, and a lock that is held while the run lives. A thread writes the status twice
a second where something changed, and every few seconds as a sign of life; so a reader sees a
run that was killed. The last twenty runs are kept. Where the store cannot be written there is no
status, and the run goes on.
"""

import json
import os
import re
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from inject.digest import digest
from inject.step import Step
from spikein.executors.task_files import STATUS, TaskFiles

RUNS_FOLDER = ".runs"
LOCK = "alive.lock"
KEPT_RUNS = 20
SIGN_OF_LIFE = 5.0
_SILENT = 60.0
_WRITE_SECONDS = 0.5

StepState = Literal["done", "waiting", "running", "failed", "blocked"]
RunState = Literal["running", "finished", "failed", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class StepStatus:
    """What became of one step so far."""

    digest: str
    name: str
    kind: str
    state: StepState
    """`blocked`: a step that it needs has failed."""
    needs: tuple[str, ...] = ()
    """The digests of its inputs."""
    stored: bool = False
    """The store had it before the run."""
    where: str = ""
    """Host, process and worker of a running step."""
    began: float | None = None
    """In seconds since 1970."""
    seconds: float | None = None
    """How long it took."""
    attempt: int = 0
    problem: str = ""
    lines: tuple[str, ...] = ()
    """The last lines of the log of a step that failed."""
    done: float | None = None
    """Units of work done, as the step last said."""
    total: float | None = None
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """What became of one run so far."""

    name: str
    """The experiment's."""
    key: str
    """Digest of what is to be made."""
    executor: str
    host: str
    process: int
    began: float
    updated: float
    state: RunState
    steps: tuple[StepStatus, ...]


def goals_key(goals: Sequence[Step]) -> str:
    """Return the digest of what a run is to make."""
    return digest(sorted({goal.digest for goal in goals}))


class LiveStatus:
    """The status of this run, kept up to date on disk."""

    def __init__(self, root: Path, run: RunStatus) -> None:
        self._run = run
        self._steps = {step.digest: step for step in run.steps}
        self._changed = True
        self._closed = threading.Event()
        self._guard = threading.RLock()
        self.folder: Path | None = None
        """The folder of this run; None if the store cannot be written."""
        self._lock: FileLock | None = None
        with suppress(OSError):
            self._open(root / RUNS_FOLDER)
        self._thread = threading.Thread(target=self._keep_writing, name="status", daemon=True)
        if self.folder is not None:
            self._write()
            self._thread.start()

    def set(self, digest: str, **changes: Any) -> None:
        """Change what is known of a step."""
        with self._guard:
            self._steps[digest] = replace(self._steps[digest], **changes)
            self._changed = True

    def add(self, step: StepStatus) -> None:
        """Show one more step, unless it is shown already."""
        with self._guard:
            self._steps.setdefault(step.digest, step)

    def close(self, state: RunState) -> None:
        """Write the last status, and let go."""
        if self.folder is None or self._closed.is_set():
            return
        self._closed.set()
        self._thread.join()
        with self._guard:
            self._run = replace(self._run, state=state)
            if state != "finished":
                self._steps = {one.digest: _stopped(one) for one in self._steps.values()}
            self._write()
        if self._lock is not None:
            self._lock.release()

    def _open(self, parent: Path) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        _forget_old_runs(parent)
        host = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname())
        began = datetime.fromtimestamp(self._run.began, UTC)
        name = f"{began:%Y%m%d-%H%M%S}-{host}-{os.getpid()}-{secrets.token_hex(2)}"
        folder = parent / name
        folder.mkdir(mode=0o700)
        self._lock = FileLock(folder / LOCK)
        self._lock.acquire(timeout=0)
        self.folder = folder

    def _keep_writing(self) -> None:
        last = time.monotonic()
        while not self._closed.wait(_WRITE_SECONDS):
            if self._changed or time.monotonic() - last >= SIGN_OF_LIFE:
                last = time.monotonic()
                with suppress(OSError):
                    self._write()

    def _write(self) -> None:
        if self.folder is None:
            return
        with self._guard:
            self._changed = False
            steps = tuple(self._steps.values())
        self._run = replace(self._run, updated=time.time(), steps=steps)
        path = self.folder / STATUS
        # Not flushed to disk: it says nothing that the store does not know after a crash.
        temporary = path.with_suffix(".tmp")
        with suppress(OSError):
            temporary.write_text(json.dumps(asdict(self._run)), encoding="utf-8")
            temporary.replace(path)


def read_statuses(root: Path) -> list[RunStatus]:
    """Return the status of every run that a store remembers, the latest first."""
    found = []
    for folder in sorted((root / RUNS_FOLDER).glob("[0-9]*"), reverse=True):
        status = _read(folder)
        if status is not None:
            found.append(status)
    return found


def _read(folder: Path) -> RunStatus | None:
    try:
        values = json.loads((folder / STATUS).read_text(encoding="utf-8"))
        given = values.pop("steps")
        run = RunStatus(**values, steps=tuple(_step(one) for one in given))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if run.state == "running" and not _is_alive(folder, run):
        return replace(run, state="interrupted", steps=tuple(map(_stopped, run.steps)))
    if run.state != "running":
        return run
    return replace(run, steps=tuple(_with_progress(folder, step) for step in run.steps))


def _stopped(step: StepStatus) -> StepStatus:
    """Return a step of a run that has ended, in which none is running."""
    return replace(step, state="waiting", where="") if step.state == "running" else step


def _step(values: Mapping[str, Any]) -> StepStatus:
    tuples = {name: tuple(values[name]) for name in ("needs", "lines")}
    return StepStatus(**{**values, **tuples})


def _with_progress(folder: Path, step: StepStatus) -> StepStatus:
    """Return a step with what the process says that builds it, where it is another one."""
    if step.state != "running":
        return step
    said = TaskFiles(folder, step.digest).progress()
    return replace(step, **said) if said else step


def _is_alive(folder: Path, run: RunStatus) -> bool:
    if run.host != socket.gethostname():
        # Some shared file systems keep locks on one host; there the signs of life must do.
        return time.time() - run.updated < _SILENT
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a store that cannot be written, where no run lives
        return False


def _forget_old_runs(parent: Path) -> None:
    folders = sorted(parent.glob("[0-9]*"), reverse=True)
    for folder in folders[KEPT_RUNS - 1 :]:
        status = _read(folder)
        if status is None or status.state != "running":
            shutil.rmtree(folder, ignore_errors=True)
