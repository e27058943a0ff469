"""Several worker processes on this machine, each with its share of cores, or with its own GPUs.

A worker is started when there is a step for it, builds one step after the other, and ends with this
process, however that ends. Its thread count follows its share: two busy processes that each use as
many threads as there are cores are several times slower than one.
"""

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from inject.helper_processes import usable_cores
from inject.step import Step
from spikein.config.executor_settings import LocalSettings
from spikein.executors.graph_file import GraphFile, write_graph
from spikein.executors.graph_run import GraphRun
from spikein.executors.scheduling import SideBySide
from spikein.executors.task import THREAD_VARIABLES, Task, TaskEnd, python_path
from train.execution import ExecutionSettings
from train.processes.extension import require_extension

CORES_A_WORKER = 4
_CHECKPOINT_SECONDS = 60.0
"""Time for an ending step to write a restart checkpoint."""


class Local(SideBySide):
    """Several worker processes on this machine, each with its share of cores or its own GPU."""

    def __init__(self, settings: LocalSettings | None = None) -> None:
        self.settings: LocalSettings = settings or LocalSettings()

    def pool(self, run: GraphRun) -> "_LocalPool":
        """Return the workers of a run."""
        shares = worker_shares(self.settings.workers, usable_cores(), visible_gpus())
        file = write_graph(run.graph, run.store, run.status.folder)
        return _LocalPool(file, shares[: max(run.left, 1)])


class Share(NamedTuple):
    """The resources of one worker."""

    cores: tuple[int, ...]
    gpus: tuple[str, ...]

    def __str__(self) -> str:
        cores = f"cores {self.cores[0]} to {self.cores[-1]}"
        text = cores if len(self.cores) > 1 else f"core {self.cores[0]}"
        return f"{text}, GPU {', '.join(self.gpus)}" if self.gpus else text


def worker_shares(
    workers: int | None, cores: Sequence[int], gpus: Sequence[str]
) -> tuple[Share, ...]:
    """Return the resources of each worker; a core or GPU is shared only if there are too few.

    Args:
        workers: their number; None takes one per GPU, or without GPUs one per four cores, at least
            two.
        cores: the numbers of the cores.
        gpus: as `CUDA_VISIBLE_DEVICES` names them.
    """
    number = workers or len(gpus) or max(2, len(cores) // CORES_A_WORKER)
    return tuple(Share(_part(cores, at, number), _part(gpus, at, number)) for at in range(number))


def _part(resources: Sequence[Any], at: int, number: int) -> tuple[Any, ...]:
    """Return the share of one worker; if there are too few resources, one shared with others."""
    if len(resources) <= number:
        return (resources[at % len(resources)],) if resources else ()
    begin, end = (round(len(resources) * edge / number) for edge in (at, at + 1))
    return tuple(resources[begin:end])


def visible_gpus() -> tuple[str, ...]:
    """Return this process's GPUs, as `CUDA_VISIBLE_DEVICES` names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return tuple(part.strip() for part in named.split(",") if part.strip() not in ("", "-1"))
    if sys.platform == "linux" and not any(Path("/dev").glob("nvidia[0-9]*")):
        return ()  # at once: importing torch takes seconds
    import torch

    return tuple(str(number) for number in range(torch.cuda.device_count()))


def require_local_training(execution: ExecutionSettings) -> None:
    """Check what DeepSpeed needs to train on this machine's processors.

    Raises:
        InputError: as `train.processes.extension.require_extension`.
    """
    if execution.backend == "deepspeed" and not visible_gpus():
        require_extension()


class _LocalPool:
    """The pool of `spikein.executors.scheduling`, out of processes of this machine."""

    def __init__(self, graph: GraphFile, shares: Sequence[Share]) -> None:
        self._graph = graph
        self._shares = shares
        self._events: queue.Queue[tuple[_Worker, dict[str, Any] | None]] = queue.Queue()
        self._workers: dict[int, _Worker] = {}
        # All at once: a process takes a second or more to start.
        for number in range(len(shares)):
            self._start(number)

    def room(self) -> int:
        """Return the number of idle workers."""
        busy = sum(worker.step is not None for worker in self._workers.values())
        return len(self._shares) - busy

    def begin(self, steps: Sequence[tuple[Step, int]]) -> None:
        """Assign each step to an idle worker."""
        for step, attempt in steps:
            worker = self._find_idle()
            share = self._shares[worker.number]
            task = Task(
                digest=step.digest, graph=self._graph, threads=len(share.cores), attempt=attempt
            )
            worker.step = step
            worker.send({"task": asdict(task), "where": f"worker {worker.number + 1} ({share})"})

    def wait(self, seconds: float) -> Iterable[TaskEnd]:
        """Return the steps that ended."""
        try:
            events = [self._events.get(timeout=seconds)]
        except queue.Empty:
            return []
        while not self._events.empty():
            events.append(self._events.get())
        ends = []
        for worker, answer in events:
            step, worker.step = worker.step, None
            if answer is not None:
                ends.append(TaskEnd(**answer))
                continue
            # Another takes its place when there is a step for it.
            self._workers.pop(worker.number, None)
            if step is not None:
                problem = f"worker {worker.number + 1} {worker.how_it_ended()}"
                ends.append(TaskEnd(digest=step.digest, state="lost", problem=problem))
        return ends

    def close(self, *, stop: bool) -> None:
        """Release the workers; with `stop`, steps end, with a restart checkpoint if they can."""
        workers = list(self._workers.values())
        try:
            for worker in workers:
                if stop and worker.step is not None:
                    worker.process.terminate()
                worker.let_go()
            deadline = time.monotonic() + _CHECKPOINT_SECONDS
            for worker in workers:
                worker.wait_until(deadline)
        finally:
            for worker in workers:
                worker.kill()

    def _find_idle(self) -> "_Worker":
        for worker in self._workers.values():
            if worker.step is None:
                return worker
        return self._start(
            next(number for number in itertools.count() if number not in self._workers)
        )

    def _start(self, number: int) -> "_Worker":
        log = self._graph.folder / "logs" / f"worker-{number + 1}.log"
        worker = self._workers[number] = _Worker(number, self._shares[number], log, self._events)
        return worker


class _Worker:
    """One worker process, which runs `spikein.executors.pools.local_worker`."""

    def __init__(
        self,
        number: int,
        share: Share,
        log: Path,
        events: "queue.Queue[tuple[_Worker, dict[str, Any] | None]]",
    ) -> None:
        self.number = number
        self.log = log
        self.step: Step | None = None
        cores = ",".join(map(str, share.cores))
        with _log_file(log) as output:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "spikein.executors.pools.local_worker",
                    str(os.getpid()),
                    cores,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env=_environment(share),
                # Ctrl-C in the terminal is for this process, which tells the workers to end.
                start_new_session=True,
            )
        threading.Thread(target=self._listen, args=(events,), daemon=True).start()

    def send(self, order: dict[str, Any]) -> None:
        """Send it a step; the listening thread reports a worker that is gone."""
        with suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()

    def let_go(self) -> None:
        """Announce that no further step will follow."""
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()

    def wait_until(self, deadline: float) -> None:
        """Wait for its end until a deadline."""
        try:
            self.process.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            return

    def kill(self) -> None:
        """End it and what it started."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def how_it_ended(self) -> str:
        """Return `was killed by SIGKILL` or the like, with the path of its log."""
        code = self.process.wait()
        if code >= 0:
            return f"ended with code {code} (see {self.log})"
        hint = " (the system may have been out of memory)" if code == -signal.SIGKILL else ""
        return f"was killed by {signal.Signals(-code).name}{hint}"

    def _listen(self, events: "queue.Queue[tuple[_Worker, dict[str, Any] | None]]") -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            events.put((self, json.loads(line)))
        events.put((self, None))


def _environment(share: Share) -> dict[str, str]:
    """Return a worker's environment; lower limits set by the user stay in force."""
    variables = dict(os.environ)
    for name in THREAD_VARIABLES:
        limit = variables.get(name, "")
        least = min(len(share.cores), int(limit)) if limit.isdigit() else len(share.cores)
        variables[name] = str(max(least, 1))
    if share.gpus:
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(share.gpus)
    return variables | {"PYTHONPATH": python_path()}


def _log_file(log: Path) -> BinaryIO:
    """Open a worker's log; if it cannot be written, the steps themselves report that."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("ab")
    except OSError:
        return open(os.devnull, "ab")
