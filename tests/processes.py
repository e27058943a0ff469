"""Python in separate processes: run to completion, or started to be stopped."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.conftest import REPOSITORY


def environment(*path: Path, **variables: str) -> dict[str, str]:
    """Return this process's variables, with the repository and more folders on Python's path."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (*path, REPOSITORY))),
        **variables,
    }


def python(
    *words: object, folder: Path = REPOSITORY, path: tuple[Path, ...] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python to completion, without checking its exit code."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env=environment(*path, **variables),
        capture_output=True,
        text=True,
        timeout=500,
    )


def printed(code: str, **more) -> str:
    """Return the output of a piece of Python, which must succeed."""
    done = python("-c", code, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def started(*words: object, folder: Path = REPOSITORY, **variables: str) -> subprocess.Popen[str]:
    """Start Python with pipes to both of its outputs."""
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def spikein_process(*words: object, **more) -> subprocess.CompletedProcess[str]:
    """Run a command of `spikein` to completion."""
    return python("-m", "spikein.cli.main", *words, **more)


def kill_at(process: subprocess.Popen[str], reached: Callable[[str], bool]) -> None:
    """Kill a process with signal 9 once it has printed a certain line, and wait for its end."""
    assert process.stdout is not None
    for line in process.stdout:
        if reached(line.strip()):
            process.kill()
            break
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
