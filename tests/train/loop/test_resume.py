"""A run that was killed, and taken up again, is the run that was never killed."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from transformers import trainer

from inject.errors import InputError
from tests.processes import kill_at, started
from tests.train import killable
from tests.train.killable import CONTEXT, KEPT, STEPS, Stopped, check_same_run, go, stop_at
from tests.train.shapes import tiny_shape
from train.loop.resume import find_resume_point
from train.processes.preemption import Preempted

pytestmark = pytest.mark.slow


def go_on(whole: Path, tokenizer: Path, unfinished: Path, out: Path, *, from_step: int) -> None:
    """Take a run up again, and compare it with the one that was never stopped."""
    tokens: list[int] = []
    go(
        out,
        unfinished,
        tokenizer,
        dropout=True,
        progress=lambda moment: tokens.append(moment.tokens),
    )
    assert len(tokens) == STEPS - from_step
    check_same_run(out, whole)
    assert len(list(unfinished.glob("checkpoint-*"))) <= 2


def test_killed_in_the_second_epoch(killable_run, tokenizer, tmp_path):
    unfinished = tmp_path / "unfinished"
    running = started("-m", "tests.train.killable", tmp_path / "killed", unfinished, tokenizer)
    kill_at(running, lambda line: line.isdigit() and int(line) >= 17 * 4 * CONTEXT)
    point = find_resume_point(unfinished, "this run")
    assert point is not None
    # The step at the kill may be the last that was saved, or lie up to three steps after it.
    step = int(point.name.removeprefix("checkpoint-"))
    assert 14 <= step <= 20
    go_on(killable_run / "whole", tokenizer, unfinished, tmp_path / "again", from_step=step)


@pytest.mark.parametrize("at", [5, STEPS])
def test_sigterm_ends_a_run_after_the_step_in_hand_with_a_checkpoint(
    killable_run, tokenizer, tmp_path, at
):
    """In the first epoch, where no checkpoint is due, and in the very last step."""
    unfinished = tmp_path / "unfinished"

    def terminate(moment) -> None:
        if moment.tokens == at * 4 * CONTEXT:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Preempted, match=f"after step {at} of {STEPS}, with a checkpoint"):
        go(
            tmp_path / "x",
            unfinished,
            tokenizer,
            dropout=True,
            progress=terminate,
        )
    point = find_resume_point(unfinished, "this run", model_steps=KEPT)
    assert point is not None
    assert point.name == f"checkpoint-{at}"
    go_on(killable_run / "whole", tokenizer, unfinished, tmp_path / "out", from_step=at)


def test_resume_with_tied_embeddings_misses_no_weight(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(killable, "SHAPE", tiny_shape(tie_embeddings=True))
    warnings: list[str] = []
    monkeypatch.setattr(trainer.logger, "warning", warnings.append)
    go(tmp_path / "whole", None, tokenizer, dropout=False)
    unfinished = tmp_path / "unfinished"
    with pytest.raises(Stopped):
        go(tmp_path / "x", unfinished, tokenizer, dropout=False, progress=stop_at(8))
    go(tmp_path / "again", unfinished, tokenizer, dropout=False)
    check_same_run(tmp_path / "again", tmp_path / "whole")
    assert not warnings


def test_a_checkpoint_of_another_run_is_refused(killable_run):
    with pytest.raises(InputError, match="belongs to the run this run, this one is another"):
        find_resume_point(killable_run / "left", "another")


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
    with pytest.raises(InputError, match="the disk is full") as error:
        go(tmp_path / "out", unfinished, tokenizer, dropout=False)
    assert "resumes from the last whole checkpoint" in str(error.value)
    assert f" free on {small_disk}; " in str(error.value)
    assert not list(unfinished.glob("checkpoint-6")), "what was half-written takes no room"
    whole = sorted(path.parent.name for path in unfinished.glob("checkpoint-*/spikein.json"))
    assert whole, "the disk held not one checkpoint"
    point = find_resume_point(unfinished, "this run", model_steps=KEPT)
    assert point is not None
    assert point.name in whole
    assert all(path.is_dir() for path in unfinished.glob("step-*"))


def test_nothing_to_take_up(tmp_path):
    assert find_resume_point(None, "x") is None
    assert find_resume_point(tmp_path / "nothing", "x") is None
    (tmp_path / "checkpoint-x").mkdir()
    (tmp_path / "other").mkdir()
    assert find_resume_point(tmp_path, "x") is None
    assert (tmp_path / "other").is_dir()
