"""No process outlives its parent, regardless of how the parent ends."""

import os
import signal
import time

import psutil
import pytest

from tests.processes import started
from tests.train.jobs import job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]
SECONDS = 10.0


def killed_in_training(command: list[str]) -> list[psutil.Process]:
    """Start a command, kill -9 it while training, and return its children that survive."""
    process = started(*command, OMP_NUM_THREADS="1")
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip().removeprefix("progress ")[:1].isdigit():
            break
    children = psutil.Process(process.pid).children(recursive=True)
    # Suspended as if in a long step, the children cannot notice the loss of their parent.
    for child in children:
        child.suspend()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(children) >= 2
    deadline = time.monotonic() + SECONDS
    while (left := [child for child in children if alive(child)]) and time.monotonic() < deadline:
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
def test_training_processes_end_with_their_parent(small_corpus, tmp_path, started_by):
    training_job = job(tmp_path / "two", small_corpus, engine="torchrun", processes=2, epochs=500)
    file = tmp_path / "job.json"
    file.write_text(training_job.model_dump_json())
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    module = ["tests.train.jobs"] if started_by == "a run" else [*torchrun, "-m", "train.worker"]
    left = killed_in_training(["-m", *module, str(file)])
    assert left == []
