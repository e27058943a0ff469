"""Several processes on this machine, as `torchrun` starts them, watched until all have ended.

Each runs one module with one argument and finds its place in the environment (`RANK`, `LOCAL_RANK`,
`WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`). Where one dies, the others are ended at once and the
error names the rank: nobody waits for a partner that is gone. Ctrl-C ends all of them.
"""

import os
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

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 10.0
_SHOWN_LINES = 15


class ProcessFailed(SpikeinError):
    """One of several training processes ended with an error."""


def launch(
    module: str,
    arguments: Sequence[str],
    *,
    processes: int,
    environment: Mapping[str, str],
    told: Callable[[str], None] | None = None,
) -> None:
    """Run `python -m module arguments…` in several processes and wait for all of them.

    Args:
        module: what to run.
        arguments: the same for all.
        processes: how many.
        environment: added to this process's own.
        told: called with each line that rank 0 writes to its standard output.

    Raises:
        ProcessFailed: one of them died; names its rank, its signal or exit code, and what it said.
    """
    port = _free_port()
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(processes)]
        running = [
            _start(module, arguments, rank, processes, port, environment, outputs[rank])
            for rank in range(processes)
        ]
        try:
            _wait(running, outputs, told)
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
) -> None:
    pipe = running[0].stdout
    if pipe is None:
        raise TypeError("the first process has no pipe")
    os.set_blocking(pipe.fileno(), False)
    held = b""
    while True:
        held = _told(held + _read(pipe.fileno()), told)
        codes = [process.poll() for process in running]
        for rank, code in enumerate(codes):
            if code:
                raise ProcessFailed(_failure(rank, code, len(running), outputs[rank]))
        if all(code == 0 for code in codes):
            _told(held + _read(pipe.fileno()) + b"\n", told)
            return
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
    output.seek(0)
    last = [line for line in output.read().decode(errors="replace").splitlines() if line.strip()][
        -_SHOWN_LINES:
    ]
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    hint = " The system may have been out of memory." if code == -signal.SIGKILL else ""
    words = "\n  ".join(["", *last]) if last else ""
    return (
        f"training process {rank} of {processes} {how}; the others were ended.{hint} "
        f"Checkpoints are kept: run again to go on.{words}"
    )


def _end(running: "Sequence[subprocess.Popen[bytes]]") -> None:
    """End what still runs, first by asking; each is the leader of a session of its own."""
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    for process in running:
        try:
            process.wait(timeout=max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
