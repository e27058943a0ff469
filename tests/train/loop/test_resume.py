"""A run that was killed, and taken up again, is the run that was never killed."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from inject.errors import InputError
from inject.stream.exposures import read_exposures
from tests.train.killable import CONTEXT, KEPT, STEPS, go
from train.loop.log import read_log
from train.loop.record import TrainingProgress
from train.loop.resume import find_resume_point

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory, tiny_tokenizer) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    tiny_tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tokenizer):
    """A run that nobody killed."""
    out = tmp_path_factory.mktemp("whole") / "out"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    go(out, None, tokenizer, dropout=True)
    torch.set_num_threads(threads)
    return out


def same(one: Path, other: Path) -> None:
    for model in ("", *(f"step-{step}" for step in KEPT)):
        weights, others = (load_file(path / model / "model.safetensors") for path in (one, other))
        assert weights.keys() == others.keys()
        assert all(torch.equal(weights[name], others[name]) for name in weights)
    assert sorted(path.name for path in one.glob("step-*")) == sorted(f"step-{k}" for k in KEPT)
    tables = [read_exposures(path) for path in (one, other)]
    assert tables[0].equals(tables[1])
    logs = [read_log(path) for path in (one, other)]
    assert [row[:4] for row in logs[0]] == [row[:4] for row in logs[1]]


@pytest.mark.parametrize("after", [4, 17])
def test_killed_in_either_epoch(whole, tmp_path, tokenizer, after):
    """Step 4 is in the first epoch, step 17 in the second; checkpoints are every three steps."""
    unfinished = tmp_path / "unfinished"
    arguments = [tmp_path / "killed", unfinished, tokenizer, "dropout"]
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.train.killable", *map(str, arguments)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    for line in running.stdout:
        if line.strip().isdigit() and int(line) >= after * 4 * CONTEXT:
            os.kill(running.pid, signal.SIGKILL)
            break
    running.wait(timeout=60)
    assert running.returncode == -signal.SIGKILL
    point = find_resume_point(unfinished, "this run")
    assert point is not None
    # The step at the kill may be the last that was saved, or lie up to three steps after it.
    assert after - 3 <= point.step <= after + 3
    told: list[int] = []
    go(
        tmp_path / "again",
        unfinished,
        tokenizer,
        dropout=True,
        progress=lambda moment: told.append(moment.tokens),
    )
    assert len(told) == STEPS - point.step
    same(tmp_path / "again", whole)
    assert len(list(unfinished.glob("checkpoint-*"))) <= 2


def interrupted(tmp_path, tokenizer, *, at: int) -> Path:
    class Stop(Exception):
        pass

    def stop(moment: TrainingProgress) -> None:
        if moment.tokens >= at * 4 * CONTEXT:
            raise Stop

    unfinished = tmp_path / "unfinished"
    with pytest.raises(Stop):
        go(tmp_path / "stopped", unfinished, tokenizer, dropout=False, progress=stop)
    return unfinished


def test_a_half_written_checkpoint_is_not_used(tmp_path, tokenizer):
    unfinished = interrupted(tmp_path, tokenizer, at=8)
    newest = find_resume_point(unfinished, "this run")
    assert newest is not None
    assert newest.step == 6
    (newest.folder / "spikein.json").unlink()
    older = find_resume_point(unfinished, "this run")
    assert older is not None
    assert older.step == 3
    assert not newest.folder.exists()


def test_a_checkpoint_of_another_run_is_refused(tmp_path, tokenizer):
    unfinished = interrupted(tmp_path, tokenizer, at=5)
    with pytest.raises(InputError, match="belongs to the run this run, this one is another"):
        find_resume_point(unfinished, "another")


def test_a_checkpoint_without_the_models_kept_before_it_is_not_used(tmp_path, tokenizer):
    unfinished = interrupted(tmp_path, tokenizer, at=11)
    assert {path.name for path in unfinished.glob("step-*")} == {"step-2", "step-7"}
    found = find_resume_point(unfinished, "this run", kept=KEPT)
    assert found is not None
    assert found.step == 9
    shutil.rmtree(unfinished / "step-7")
    older = find_resume_point(unfinished, "this run", kept=KEPT)
    assert older is not None
    assert older.step == 6


@pytest.fixture(params=["900k", "1200k"])
def small_disk(request, tmp_path):
    """A small file system: one is full within the second checkpoint's weights, and one within its
    optimiser, whose file torch cannot finish and does not say why."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={request.param}", "tmpfs", str(folder)],
        capture_output=True,
    )
    if not mounted or mounted.returncode:
        pytest.skip("no small file system can be mounted here")
    yield folder
    # Torch's writer of a file that failed holds it open for as long as the error lives.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_fills_up_leaves_the_checkpoint_before(small_disk, tmp_path, tokenizer):
    unfinished = small_disk / "unfinished"
    with pytest.raises(InputError, match="the disk is full") as found:
        go(tmp_path / "out", unfinished, tokenizer, dropout=False)
    assert "goes on from the last whole checkpoint" in str(found.value)
    assert f" free on {small_disk}; " in str(found.value)
    assert not list(unfinished.glob("checkpoint-6")), "what was half-written takes no room"
    whole = sorted(path.parent.name for path in unfinished.glob("checkpoint-*/spikein.json"))
    assert whole, "the disk held not one checkpoint"
    point = find_resume_point(unfinished, "this run", kept=KEPT)
    assert point is not None
    assert point.folder.name in whole
    assert all(path.is_dir() for path in unfinished.glob("step-*"))


def test_nothing_to_take_up(tmp_path):
    assert find_resume_point(None, "x") is None
    assert find_resume_point(tmp_path / "nothing", "x") is None
    (tmp_path / "checkpoint-x").mkdir()
    (tmp_path / "other").mkdir()
    assert find_resume_point(tmp_path, "x") is None
    assert (tmp_path / "other").is_dir()
