"""SIGTERM ends a run after the step in hand, with a checkpoint and exit code 143."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from inject.stream.exposures import read_exposures
from tests.train.jobs import job, small_corpus
from tests.train.killable import CONTEXT, KEPT, STEPS, go
from train.job import TrainingJob
from train.loop.log import read_log
from train.loop.resume import find_resume_point

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
REPOSITORY = Path(__file__).resolve().parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
NEVER = 10_000


def start(module: str, *arguments: object, python: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *python, "-m", module, *map(str, arguments)],
        cwd=REPOSITORY,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended_by_sigterm(process: subprocess.Popen[str]) -> str:
    """Wait for the first step, send SIGTERM; return what was said."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip().removeprefix("progress ")[:1].isdigit():
            process.send_signal(signal.SIGTERM)
            break
    _, said = process.communicate(timeout=120)
    return said


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_tokenizer, one_thread) -> Path:
    """A run that nobody ended, with dropout, and the tokenizer."""
    root = tmp_path_factory.mktemp("whole")
    tiny_tokenizer.save_pretrained(root / "tokenizer")
    go(root / "out", None, root / "tokenizer", dropout=True)
    return root


@pytest.mark.parametrize("at", [5, 16, STEPS])
def test_a_run_taken_up_after_sigterm_is_bit_for_bit_the_run_never_ended(whole, tmp_path, at):
    """In the first epoch, in the second, and in the very last step."""
    unfinished = tmp_path / "unfinished"
    arguments = [
        tmp_path / "x",
        unfinished,
        whole / "tokenizer",
        "dropout",
        NEVER,
        at * 4 * CONTEXT,
    ]
    process = start("tests.train.killable", *arguments)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 143, said
    assert f"ended by SIGTERM after step {at} of {STEPS}, with a checkpoint" in said
    assert "Traceback" not in said
    point = find_resume_point(unfinished, "this run", kept=KEPT)
    assert point is not None
    assert point.step == at
    told: list[int] = []
    go(
        tmp_path / "out",
        unfinished,
        whole / "tokenizer",
        dropout=True,
        progress=lambda moment: told.append(moment.tokens),
    )
    assert len(told) == STEPS - at
    for model in ("", *(f"step-{step}" for step in KEPT)):
        ours, theirs = (
            load_file(path / "out" / model / "model.safetensors") for path in (tmp_path, whole)
        )
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    seen = [read_exposures(path / "out") for path in (tmp_path, whole)]
    assert seen[0].equals(seen[1])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return small_corpus(tmp_path_factory.mktemp("corpus"))


def written(place: Path, given: TrainingJob) -> Path:
    file = place / "job.json"
    file.write_text(given.model_dump_json())
    return file


def check_went_on(place: Path, alone: Path, *, from_step: int) -> None:
    logs = [read_log(path / "out") for path in (place, alone)]
    assert [row.tokens for row in logs[0]] == [row.tokens for row in logs[1]]
    assert from_step < len(logs[0])
    np.testing.assert_allclose(
        [row.loss for row in logs[0]], [row.loss for row in logs[1]], rtol=1e-4
    )


def test_a_runner_passes_sigterm_on_and_all_its_processes_stop_after_one_step(corpus, tmp_path):
    given = job(
        tmp_path / "two", corpus, engine="torchrun", processes=2, epochs=12, resume_every=NEVER
    )
    file = written(tmp_path, given)
    process = start("tests.train.jobs", file)
    said = ended_by_sigterm(process)
    assert process.returncode == 143, said
    assert "ended by SIGTERM after step " in said
    again = start("tests.train.jobs", file)
    _, said = again.communicate(timeout=120)
    assert again.returncode == 0, said
    alone = start(
        "tests.train.jobs",
        written(
            tmp_path / "two",
            job(tmp_path / "alone", corpus, engine="torchrun", processes=2, epochs=12),
        ),
    )
    assert alone.wait(timeout=120) == 0
    steps = [int(path.name.split("-")[1]) for path in tmp_path.glob("two/unfinished/checkpoint-*")]
    assert len(steps) == 1
    check_went_on(tmp_path / "two", tmp_path / "alone", from_step=steps[0])


def test_processes_of_torchrun_stop_with_a_checkpoint_when_it_is_ended(corpus, tmp_path):
    given = job(tmp_path / "two", corpus, engine="torchrun", epochs=12, resume_every=NEVER)
    process = start(
        "torch.distributed.run",
        "--standalone", "--nproc-per-node", "2", "-m", "train.worker", written(tmp_path, given),
    )  # fmt: skip
    said = ended_by_sigterm(process)
    assert process.returncode != 0
    assert "ended by SIGTERM after step " in said
    point = find_resume_point(tmp_path / "two" / "unfinished", "this run")
    assert point is not None
    assert f"after step {point.step} of 186, with a checkpoint" in said
