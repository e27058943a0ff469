"""No process outlives the one that started it, however that one ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.train.jobs import job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]
REPOSITORY = Path(__file__).resolve().parents[3]
SECONDS = 10.0


def killed_in_training(command: list[str]) -> list[psutil.Process]:
    """Start a command, kill -9 it once it trains; return what it had started and still lives."""
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip().removeprefix("progress ")[:1].isdigit():
            break
    started = psutil.Process(process.pid).children(recursive=True)
    # In the midst of a long step: nothing that they would meet tells them that they are alone.
    for child in started:
        child.suspend()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(started) >= 2
    deadline = time.monotonic() + SECONDS
    while (left := [child for child in started if alive(child)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    for child in left:
        child.kill()
    return left


def alive(child: psutil.Process) -> bool:
    try:
        return child.is_running() and child.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("started_by", ["a run", "torchrun"])
def test_training_processes_end_with_whoever_started_them(small_corpus, tmp_path, started_by):
    given = job(tmp_path / "two", small_corpus, engine="torchrun", processes=2, epochs=500)
    file = tmp_path / "job.json"
    file.write_text(given.model_dump_json())
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    how = ["tests.train.jobs"] if started_by == "a run" else [*torchrun, "-m", "train.worker"]
    left = killed_in_training([sys.executable, "-m", *how, str(file)])
    assert left == []
