"""A training process exits with its own code even if interpreter shutdown would abort."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

PREPARED = """
import atexit, os, sys
import train.job, train.unlearn.stages, train.unlearn.unlearning_job
from train.processes.preemption import Preempted

class Aborts:
    # Like a thread of the process group during interpreter shutdown.
    def __del__(self, abort=os.abort):
        abort()

keep = Aborts()
atexit.register(lambda: print("at exit"))

def work(*_, **__):
    print("worked")
    {ending}

train.job.run = train.unlearn.stages.run_stage = work
for job in (train.job.TrainingJob, train.unlearn.unlearning_job.UnlearningJob):
    job.model_validate_json = lambda text: None
"""


@pytest.mark.parametrize(
    ("job", "ending", "code", "message"),
    [
        ("{}", "pass", 0, ""),
        (
            '{"method": {}}',
            "raise Preempted('ended by SIGTERM after step 3 of 5')",
            143,
            "ended by SIGTERM",
        ),
        ("{}", "[][1]", 1, "IndexError: list index out of range"),
    ],
)
def test_exit_code_comes_from_the_work(job, ending, code, message, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(PREPARED.format(ending=ending))
    (tmp_path / "job.json").write_text(job)
    # Output goes to a file, as for processes that `train.launch` starts.
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        done = subprocess.run(
            [sys.executable, "-m", "train.worker", str(tmp_path / "job.json")],
            env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"},
            stdout=out,
            stderr=err,
        )
    written = (tmp_path / "err").read_text()
    assert done.returncode == code, written
    assert message in written
    assert ("Traceback" in written) == (code == 1)
    assert (tmp_path / "out").read_text().split("\n")[:2] == ["worked", "at exit"]
