"""Several processes on this machine, as `torchrun` starts them, watched until all have ended.

Each runs one module with one argument and finds its place in the environment (`RANK`, `LOCAL_RANK`,
`WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`). Where one dies or hangs
(`train.processes.hang_detection`), the others are ended at once and the error names the rank:
nobody waits for a partner that is gone. Ctrl-C ends all of them; SIGTERM is passed on, and all end
with a checkpoint.
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
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from inject.errors import SpikeinError
from train.processes.hang_detection import ADVICE, PARENT, POLL_SECONDS, WATCHED, Silence, Watch
from train.processes.preemption import Preempted, StopRequest, hearing_sigterm

_POLL_SECONDS = 0.1
_SHOWN_LINES = 15
_SPEAK_SECONDS = 1.0
"""For a process that hangs to write down where."""


class ProcessFailed(SpikeinError):
    """One of several training processes ended with an error."""


def launch(
    module: str,
    arguments: Sequence[str],
    *,
    processes: int,
    environment: Mapping[str, str],
    told: Callable[[str], None] | None = None,
    heartbeats: Path | None = None,
    silent_after: float | None = None,
) -> None:
    """Run `python -m module arguments…` in several processes and wait for all of them.

    Args:
        module: what to run.
        arguments: the same for all.
        processes: how many.
        environment: added to this process's own.
        told: called with each line that rank 0 writes to its standard output.
        heartbeats: the folder where the processes say where they are; None watches nothing.
        silent_after: seconds that one may be silent within a step; None follows the steps.

    Raises:
        ProcessFailed: one of them died or hangs; names its rank, its signal, exit code or place,
            and what it said.
        Preempted: SIGTERM came, and all have ended with a checkpoint.
    """
    port = _free_port()
    watch = None
    if heartbeats is not None:
        # What an earlier start left would pass for signs of this one.
        shutil.rmtree(heartbeats, ignore_errors=True)
        watch = Watch(heartbeats, processes, silent_after=silent_after)
        environment = {**environment, WATCHED: "1"}
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(processes)]
        running = [
            _start(module, arguments, rank, processes, port, environment, outputs[rank])
            for rank in range(processes)
        ]
        try:
            with hearing_sigterm() as request:
                _wait(running, outputs, told, watch, request)
        finally:
            _end(running)


def _start(
    module: str,
    arguments: Sequence[str],
    rank: int,
    processes: int,
    port: int,
    environment: Mapping[str, str],
    output: IO[bytes],
) -> "subprocess.Popen[bytes]":
    place = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": processes,
        "LOCAL_WORLD_SIZE": processes,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    path = os.pathsep.join(
        part
        for part in (str(Path(__file__).resolve().parent.parent), os.getenv("PYTHONPATH"))
        if part
    )
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": path,
            **environment,
            PARENT: str(os.getpid()),
            **{name: str(value) for name, value in place.items()},
        },
        stdout=subprocess.PIPE if rank == 0 else output,
        stderr=output,
        start_new_session=True,
    )


def _wait(
    running: "Sequence[subprocess.Popen[bytes]]",
    outputs: Sequence[IO[bytes]],
    told: Callable[[str], None] | None,
    watch: Watch | None,
    request: StopRequest,
) -> None:
    pipe = running[0].stdout
    if pipe is None:
        raise TypeError("the first process has no pipe")
    os.set_blocking(pipe.fileno(), False)
    held = b""
    looked = time.monotonic()
    passed_on = False
    while True:
        held = _told(held + _read(pipe.fileno()), told)
        if request.heard and not passed_on:
            passed_on = True
            for process in running:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
        codes = [process.poll() for process in running]
        for rank, code in enumerate(codes):
            if code == -signal.SIGTERM and request.heard:
                raise Preempted(
                    "ended by SIGTERM, not between two steps of a training run. Checkpoints are "
                    "kept: run the same command to go on."
                )
            # A process that ends with a checkpoint is followed by all others.
            if code not in (None, 0, Preempted.exit_code):
                raise ProcessFailed(_failure(rank, code, len(running), outputs[rank]))
        if None not in codes:
            _told(held + _read(pipe.fileno()) + b"\n", told)
            if Preempted.exit_code in codes:
                raise Preempted(_farewell(outputs[codes.index(Preempted.exit_code)]))
            return
        if watch is not None and time.monotonic() - looked >= POLL_SECONDS:
            looked = time.monotonic()
            if (silence := watch.check()) is not None:
                raise ProcessFailed(_hang(silence, running, outputs))
        time.sleep(_POLL_SECONDS)


def _read(descriptor: int) -> bytes:
    """Return what lies in a pipe, without waiting for more."""
    found = b""
    try:
        while part := os.read(descriptor, 1 << 16):
            found += part
    except BlockingIOError:
        pass
    return found


def _told(text: bytes, told: Callable[[str], None] | None) -> bytes:
    """Hand over the whole lines of a text; return the rest."""
    *whole, rest = text.split(b"\n")
    if told is not None:
        for line in whole:
            if line:
                told(line.decode(errors="replace"))
    return rest


def _failure(rank: int, code: int, processes: int, output: IO[bytes]) -> str:
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    hint = " The system may have been out of memory." if code == -signal.SIGKILL else ""
    return (
        f"training process {rank} of {processes} {how}; the others were ended.{hint} "
        f"Checkpoints are kept: run again to go on.{_quoted(_said(output))}"
    )


def _hang(
    silence: Silence,
    running: "Sequence[subprocess.Popen[bytes]]",
    outputs: Sequence[IO[bytes]],
) -> str:
    """Ask who hangs where it is, and return what to say; one that is stopped gives no answer."""
    for rank in silence.ranks:
        if running[rank].poll() is None and hasattr(signal, "SIGUSR1"):
            running[rank].send_signal(signal.SIGUSR1)
    time.sleep(_SPEAK_SECONDS)
    words = "".join(_quoted(_stack(_said(outputs[rank]))) for rank in silence.ranks)
    return f"{silence.text}. All were ended. {ADVICE}{words}"


def _farewell(output: IO[bytes]) -> str:
    """Return what a process said that ended by SIGTERM; libraries may have added lines."""
    said = [line for line in _said(output) if "SIGTERM" in line]
    return said[-1] if said else "ended by SIGTERM"


def _stack(lines: list[str]) -> list[str]:
    """Return the innermost calls of a stack that a process was made to write, or all lines."""
    for at, line in reversed(list(enumerate(lines))):
        if "most recent call first" in line:
            return lines[at : at + _SHOWN_LINES]
    return lines


def _said(output: IO[bytes]) -> list[str]:
    """Return the lines that a process wrote."""
    output.seek(0)
    return [line for line in output.read().decode(errors="replace").splitlines() if line.strip()]


def _quoted(lines: Sequence[str]) -> str:
    last = lines[-_SHOWN_LINES:]
    return "\n  ".join(["", *last]) if last else ""


def _end(running: "Sequence[subprocess.Popen[bytes]]") -> None:
    """End what still runs, and what it started; each is the leader of a session of its own.

    Not by asking: that would have it finish its step, which it cannot without the others.
    """
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    for process in running:
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
