"""The state of each step of a running run, in a file that `spikein status` reads.

`<store>/.runs/<start>-<host>-<process>/` belongs to one run: `status.json`, the steps' logs, the
graph for its workers, and a lock that is held while the run lives. A thread writes the status twice
a second if something changed, and every few seconds as a sign of life, so that a reader notices a
killed run. The last twenty runs are kept. If the store cannot be written, the run continues without
a status.
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
from inject.secrets import masked
from inject.step import Step

RUNS_FOLDER = ".runs"
LOCK = "alive.lock"
STATUS = "status.json"
MARK = "--- "
"""Prefix of our own lines in a log."""
LAST_LINES = 12
"""Lines of a step's log in messages and in `spikein status`."""
_LOG_BYTES = 1 << 16
_LINE_LENGTH = 300
_PROGRESS = ("where", "began", "done", "total", "unit", "note")
KEPT_RUNS = 20
SIGN_OF_LIFE = 5.0
_SILENT = 60.0
_WRITE_SECONDS = 0.5

StepState = Literal["done", "waiting", "running", "failed", "blocked"]
RunState = Literal["running", "finished", "failed", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class StepStatus:
    """The state of one step."""

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
    """Units of work done, by the step's last report."""
    total: float | None = None
    unit: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """The state of one run."""

    name: str
    """The experiment's."""
    key: str
    """Digest of the run's goals."""
    executor: str
    host: str
    process: int
    began: float
    updated: float
    state: RunState
    steps: tuple[StepStatus, ...]


def goals_key(goals: Sequence[Step]) -> str:
    """Return the digest of a run's goals."""
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
        """Update the state of a step."""
        with self._guard:
            self._steps[digest] = replace(self._steps[digest], **changes)
            self._changed = True

    def add(self, step: StepStatus) -> None:
        """Add a step, unless it is already shown."""
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
                self._steps = {step.digest: _stop_step(step) for step in self._steps.values()}
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
        with suppress(OSError):
            _replace(self.folder / STATUS, asdict(self._run))


def _replace(path: Path, values: dict[str, Any]) -> None:
    # Not flushed to disk: after a crash the store has all of this information.
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(values), encoding="utf-8")
    temporary.replace(path)


def read_statuses(root: Path) -> list[RunStatus]:
    """Return the status of every run that a store remembers, the latest first."""
    statuses = []
    for folder in sorted((root / RUNS_FOLDER).glob("[0-9]*"), reverse=True):
        status = _read(folder)
        if status is not None:
            statuses.append(status)
    return statuses


def _read(folder: Path) -> RunStatus | None:
    try:
        values = json.loads((folder / STATUS).read_text(encoding="utf-8"))
        records = values.pop("steps")
        run = RunStatus(**values, steps=tuple(_step(record) for record in records))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if run.state == "running" and not _is_alive(folder, run):
        return replace(run, state="interrupted", steps=tuple(map(_stop_step, run.steps)))
    if run.state != "running":
        return run
    return replace(run, steps=tuple(_add_progress(folder, step) for step in run.steps))


def _stop_step(step: StepStatus) -> StepStatus:
    """Return a step of a run that has ended, in which none is running."""
    return replace(step, state="waiting", where="") if step.state == "running" else step


def _step(values: Mapping[str, Any]) -> StepStatus:
    tuples = {name: tuple(values[name]) for name in ("needs", "lines")}
    return StepStatus(**{**values, **tuples})


def _add_progress(folder: Path, step: StepStatus) -> StepStatus:
    """Return a step with the reports of the process that builds it, if it is another one."""
    if step.state != "running":
        return step
    report = TaskFiles(folder, step.digest).progress()
    return replace(step, **report) if report else step


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


class TaskFiles:
    """The files of one step in one run."""

    def __init__(self, run_folder: Path, digest: str) -> None:
        self._folder = run_folder / "tasks"
        self._digest = digest[:12]
        self.log = run_folder / "logs" / f"{self._digest}.log"

    def write_progress(self, **values: Any) -> None:
        """Report the progress of the step; a full disk loses only this report."""
        self._write("progress", values)

    def progress(self) -> dict[str, Any]:
        """Return the last report of the step; empty if there is none."""
        report = self._read("progress") or {}
        return {name: value for name, value in report.items() if name in _PROGRESS}

    def notices(self) -> list[str]:
        """Return the last messages of the step for the user."""
        return list((self._read("progress") or {}).get("notices", ()))

    def write_end(self, values: dict[str, Any]) -> None:
        """Record the end of the step."""
        self._write("end", values)

    def end(self) -> dict[str, Any] | None:
        """Return the end of the step; None before it is recorded."""
        return self._read("end")

    def clear(self) -> None:
        """Discard the reports of an earlier attempt."""
        for topic in ("progress", "end"):
            self._path(topic).unlink(missing_ok=True)

    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines of the log, without secrets and without control characters."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _LOG_BYTES))
                text = file.read().decode("utf-8", errors="replace")
        except OSError:
            return ()
        lines = [re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", line) for line in text.splitlines()]
        # Our own lines, such as the start of an attempt, do not describe the failure.
        visible = [
            line.rstrip()[:_LINE_LENGTH]
            for line in lines
            if line.strip() and not line.startswith(MARK)
        ]
        return tuple(masked(line) for line in visible[-LAST_LINES:])

    def _path(self, topic: str) -> Path:
        return self._folder / f"{self._digest}.{topic}.json"

    def _write(self, topic: str, values: dict[str, Any]) -> None:
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            _replace(self._path(topic), values)

    def _read(self, topic: str) -> dict[str, Any] | None:
        try:
            values = json.loads(self._path(topic).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return values if isinstance(values, dict) else None
