"""SIGTERM ends a run of several processes after the current step with a common checkpoint.

`tests/train/loop/test_resume.py` has the same test for one process, bit for bit.
"""

import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.processes import started
from tests.train.jobs import job
from train.job import TrainingJob, run, run_job
from train.loop.log import read_log
from train.loop.resume import find_resume_point

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "train.worker")


def ended_by_sigterm(process: subprocess.Popen[str]) -> str:
    """Wait for the first step, send SIGTERM and return the error output."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip().removeprefix("progress ")[:1].isdigit():
            process.send_signal(signal.SIGTERM)
            break
    _, output = process.communicate(timeout=120)
    return output


def preempted_job(place: Path, corpus: Path, **more) -> tuple[TrainingJob, Path]:
    """Return a job that saves a checkpoint only when it is ended, and its file."""
    made = job(place, corpus, engine="torchrun", epochs=12, resume_every=10_000, **more)
    file = place / "job.json"
    file.write_text(made.model_dump_json())
    return made, file


def test_a_runner_forwards_sigterm_and_all_processes_stop_at_one_step(
    small_corpus, tmp_path, monkeypatch
):
    made, file = preempted_job(tmp_path / "two", small_corpus, processes=2)
    process = started("-m", "tests.train.jobs", file, OMP_NUM_THREADS="1")
    output = ended_by_sigterm(process)
    assert process.returncode == 143, output
    assert "ended by SIGTERM after step " in output
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    run_job(run, made, Path(made.unfinished))
    [step] = [int(path.name.split("-")[1]) for path in tmp_path.glob("two/unfinished/checkpoint-*")]
    run(job(tmp_path / "single", small_corpus, engine="process", epochs=12))
    logs = [read_log(tmp_path / name / "out") for name in ("two", "single")]
    assert [row.tokens for row in logs[0]] == [row.tokens for row in logs[1]]
    assert step < len(logs[0])
    np.testing.assert_allclose(
        [row.loss for row in logs[0]], [row.loss for row in logs[1]], rtol=1e-4
    )


def test_torchrun_processes_stop_with_a_checkpoint_on_sigterm(small_corpus, tmp_path):
    made, file = preempted_job(tmp_path / "two", small_corpus)
    process = started("-m", *TORCHRUN, file, OMP_NUM_THREADS="1")
    output = ended_by_sigterm(process)
    assert process.returncode != 0
    assert "ended by SIGTERM after step " in output
    point = find_resume_point(Path(made.unfinished), "this run")
    assert point is not None
    step = point.name.removeprefix("checkpoint-")
    assert f"after step {step} of 186, with a checkpoint" in output
