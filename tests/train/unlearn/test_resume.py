"""A killed and resumed run is identical to an uninterrupted run."""

import shutil
from pathlib import Path

import pytest

from tests.processes import kill_at, started
from tests.train.killable import Stopped, check_same_run
from tests.train.unlearn.made import SHARED, job, unlearn
from train.execution import ExecutionSettings
from train.loop.log import TrainingProgress
from train.unlearn.job import unlearn_job

pytestmark = pytest.mark.slow
EVERY_STEP = ExecutionSettings(resume_every=1)
"""A checkpoint after each of the four steps."""
RELABEL = {"method": "relabel", "reinforced_epochs": 1}
"""The reinforced model trains for two steps before those four."""


@pytest.fixture(scope="module")
def relabelled(world, tmp_path_factory) -> Path:
    """The result of the uninterrupted run."""
    return unlearn(world, tmp_path_factory.mktemp("relabelled"), RELABEL, execution=EVERY_STEP)


def stop(moment: TrainingProgress) -> None:
    if moment.tokens > 0.6 * moment.total:
        raise Stopped


def test_a_run_stopped_in_the_first_stage_resumes_exactly(world, relabelled, tmp_path):
    stopped = job(world, tmp_path, RELABEL, execution=EVERY_STEP)
    with pytest.raises(Stopped):
        unlearn_job(stopped, progress=stop)
    assert list(tmp_path.glob("unfinished/first/unfinished/checkpoint-*"))
    unlearn_job(stopped)
    check_same_run(Path(stopped.out), relabelled)


def test_stopped_adapters_resume_exactly(world, tmp_path):
    entry = {**SHARED["kl"], "mode": "lora"}
    whole = unlearn(world, tmp_path / "whole", entry, execution=EVERY_STEP)
    stopped = job(world, tmp_path / "stopped", entry, execution=EVERY_STEP)
    with pytest.raises(Stopped):
        unlearn_job(stopped, progress=stop)
    unlearn_job(stopped)
    check_same_run(Path(stopped.out), whole)


def test_a_run_killed_in_the_second_stage_resumes_exactly(world, relabelled, tmp_path):
    killed = job(world, tmp_path / "killed", RELABEL, execution=EVERY_STEP)
    file = tmp_path / "job.json"
    file.write_text(killed.model_dump_json(), encoding="utf-8")
    steps = iter(range(1, 100))
    running = started("-m", "tests.train.unlearn.made", file)
    kill_at(running, lambda line: line.isdigit() and next(steps) == 4)
    unlearn_job(killed)
    check_same_run(Path(killed.out), relabelled)


def test_a_damaged_first_stage_is_logged_and_retrained(world, relabelled, tmp_path, caplog):
    again = job(world, tmp_path, RELABEL)
    shutil.copytree(relabelled.parent / "unfinished" / "first", tmp_path / "unfinished" / "first")
    stage = tmp_path / "unfinished/first/model"
    content = bytearray((stage / "model.safetensors").read_bytes())
    content[len(content) // 2] ^= 1
    (stage / "model.safetensors").write_bytes(content)
    unlearn_job(again)
    assert f"{stage} is damaged" in caplog.text
    check_same_run(Path(again.out), relabelled)
