"""Several processes on this machine, started and watched until all ended.

Each has a separate session and output files, and gets its rank as from `torchrun` (`RANK`,
`LOCAL_RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`). Torch's agent is not used: it would end
the others by SIGTERM and give them 30 seconds. After a crash they would wait 30 seconds for a dead
process, and after SIGTERM 30 seconds are too short for a long step and its restart checkpoint.
Here, if one process dies or hangs (`train.processes.hang_detection`), the others are ended
immediately and the error names the rank. Ctrl-C ends all of them; SIGTERM is passed on, and all end
with a restart checkpoint.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from inject.errors import SpikeinError
from train.processes.hang_detection import (
    ADVICE,
    PARENT,
    POLL_SECONDS,
    WATCHED_BY_PARENT,
    HangDetector,
)
from train.processes.preemption import Preempted, StopRequest, handle_sigterm

_POLL_SECONDS = 0.1
_SHOWN_LINES = 15
_END_SECONDS = 30.0
"""Seconds to wait for a killed process to end; one that waits for a GPU may never end."""
_STACK_SECONDS = 1.0
"""Seconds to wait for a hanging process to write its stack."""


class ProcessFailed(SpikeinError):
    """One of several training processes ended with an error."""


def launch(
    module: str,
    arguments: Sequence[str],
    *,
    processes: int,
    environment: Mapping[str, str],
    on_line: Callable[[str], None] | None = None,
    heartbeats: Path | None = None,
    hang_timeout: float | None = None,
) -> None:
    """Run `python -m module arguments…` in several processes and wait for all of them.

    Args:
        module: module to run.
        arguments: the same for all.
        processes: number of processes.
        environment: added to this process's own.
        on_line: called with each line that rank 0 writes to its standard output.
        heartbeats: the folder where the processes write their heartbeats; None detects no hang.
        hang_timeout: allowed seconds without a heartbeat within a step; None adapts to the steps.

    Raises:
        ProcessFailed: one of them died or hangs; names its rank, its signal, exit code or position,
            and quotes its output.
        Preempted: SIGTERM came, and all have ended with a restart checkpoint.
    """
    detector, logs = None, None
    if heartbeats is not None:
        # Next to the heartbeats, so that a kill leaves nothing elsewhere.
        logs = heartbeats.with_name("logs")
        # Heartbeats of an earlier start would be mistaken for new ones.
        shutil.rmtree(heartbeats, ignore_errors=True)
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(parents=True)
        detector = HangDetector(heartbeats, processes, hang_timeout=hang_timeout)
        environment = {**environment, WATCHED_BY_PARENT: "1"}
    with (
        nullcontext(logs) if logs else tempfile.TemporaryDirectory() as place,
        handle_sigterm() as request,
    ):
        workers = _Workers(module, arguments, processes, environment, Path(place))
        try:
            _wait(workers, on_line, detector, request)
        finally:
            workers.end()


class _Workers:
    """The processes of one launch."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        processes: int,
        environment: Mapping[str, str],
        logs: Path,
    ) -> None:
        self.number = processes
        self._logs = logs
        self._offset = 0
        self._processes: list[subprocess.Popen[bytes]] = []
        for rank, place in enumerate(_environments(processes, environment)):
            with open(logs / f"{rank}.out", "wb") as out, open(logs / f"{rank}.err", "wb") as err:
                self._processes.append(
                    subprocess.Popen(
                        [sys.executable, "-m", module, *arguments],
                        env={**os.environ, **place},
                        stdout=out,
                        stderr=err,
                        start_new_session=True,
                    )
                )

    def exit_codes(self) -> list[int | None]:
        """Return the exit code of each process, negative after a signal; None while it runs."""
        return [process.poll() for process in self._processes]

    def send(self, number: int, ranks: Sequence[int]) -> None:
        """Send a signal to those of the processes that still run."""
        for rank in ranks:
            self._processes[rank].send_signal(number)

    def new_output(self) -> bytes:
        """Return rank 0's standard output since the last call."""
        with open(self._logs / "0.out", "rb") as file:
            file.seek(self._offset)
            text = file.read()
        self._offset += len(text)
        return text

    def error_lines(self, rank: int) -> list[str]:
        """Return the lines that a process wrote to its standard error."""
        text = (self._logs / f"{rank}.err").read_text(encoding="utf-8", errors="replace")
        return [line for line in text.splitlines() if line.strip()]

    def end(self) -> None:
        """End the running processes and their children; each leads a separate session.

        Not by SIGTERM: a process would try to finish its step, which is impossible without the
        others.
        """
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            for process in self._processes:
                process.wait(_END_SECONDS)


def _environments(processes: int, environment: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the variables that each process gets in addition to this process's environment."""
    path = os.pathsep.join(
        part
        for part in (str(Path(__file__).resolve().parent.parent), os.getenv("PYTHONPATH"))
        if part
    )
    port = _free_port()
    return [
        {
            "PYTHONPATH": path,
            **environment,
            PARENT: str(os.getpid()),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(processes),
            "LOCAL_WORLD_SIZE": str(processes),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TORCHELASTIC_RUN_ID": f"spikein-{os.getpid()}-{port}",
        }
        for rank in range(processes)
    ]


def _wait(
    workers: _Workers,
    on_line: Callable[[str], None] | None,
    detector: HangDetector | None,
    request: StopRequest,
) -> None:
    partial_line = b""
    checked_at = time.monotonic()
    forwarded = False
    while True:
        partial_line = _forward_lines(partial_line + workers.new_output(), on_line)
        if request.received and not forwarded:
            forwarded = True
            workers.send(signal.SIGTERM, range(workers.number))
        codes = workers.exit_codes()
        if request.received and -signal.SIGTERM in codes:
            raise Preempted(
                "ended by SIGTERM, not between two steps of a training run. Checkpoints are "
                "kept: run the same command to resume."
            )
        # A process that ends with a restart checkpoint is followed by all others.
        failed = {
            rank: code
            for rank, code in enumerate(codes)
            if code is not None and code not in (0, Preempted.exit_code)
        }
        if failed:
            # If one is killed, the others fail immediately because of it.
            rank = min(failed, key=lambda rank: failed[rank] >= 0)
            raise ProcessFailed(_failure_message(workers, rank, failed[rank]))
        if None not in codes:
            _forward_lines(partial_line + workers.new_output() + b"\n", on_line)
            if Preempted.exit_code in codes:
                first = codes.index(Preempted.exit_code)
                raise Preempted(_preemption_message(workers.error_lines(first)))
            return
        if detector is not None and time.monotonic() - checked_at >= POLL_SECONDS:
            checked_at = time.monotonic()
            if (hang := detector.check()) is not None:
                raise ProcessFailed(_hang_message(workers, *hang))
        time.sleep(_POLL_SECONDS)


def _forward_lines(text: bytes, on_line: Callable[[str], None] | None) -> bytes:
    """Call `on_line` with each whole line of a text; return the rest."""
    *whole, partial_line = text.split(b"\n")
    if on_line is not None:
        for line in whole:
            if line:
                on_line(line.decode(errors="replace"))
    return partial_line


def _failure_message(workers: _Workers, rank: int, code: int) -> str:
    outcome = (
        f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    )
    hint = " The system may have been out of memory." if code == -signal.SIGKILL else ""
    return (
        f"training process {rank} of {workers.number} {outcome}; the others were ended.{hint} "
        f"Checkpoints are kept: run again to resume.{_indent(workers.error_lines(rank))}"
    )


def _hang_message(workers: _Workers, ranks: Sequence[int], text: str) -> str:
    """Return the error of a hang, with the stacks that the processes write on request."""
    if hasattr(signal, "SIGUSR1"):
        workers.send(signal.SIGUSR1, ranks)
    time.sleep(_STACK_SECONDS)
    stacks = "".join(_indent(_last_stack(workers.error_lines(rank))) for rank in ranks)
    return f"{text}. All were ended. {ADVICE}{stacks}"


def _preemption_message(lines: Sequence[str]) -> str:
    """Return the message of a process ended by SIGTERM; libraries may have added lines."""
    return next((line for line in reversed(lines) if "SIGTERM" in line), "ended by SIGTERM")


def _last_stack(lines: list[str]) -> list[str]:
    """Return the innermost calls of the last stack in a process's output, or all lines."""
    for at, line in reversed(list(enumerate(lines))):
        if "most recent call first" in line:
            return lines[at : at + _SHOWN_LINES]
    return lines


def _indent(lines: Sequence[str]) -> str:
    last = lines[-_SHOWN_LINES:]
    return "\n  ".join(["", *last]) if last else ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
