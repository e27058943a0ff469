"""A killed and resumed run is identical to an uninterrupted run."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from transformers import trainer

from inject.errors import InputError
from tests.processes import kill_at, started
from tests.train import killable
from tests.train.killable import CONTEXT, KEPT, STEPS, Stopped, check_same_run, stop_at, train_run
from tests.train.shapes import tiny_shape
from train.loop.resume import find_resume_point
from train.processes.preemption import Preempted

pytestmark = pytest.mark.slow


def resume(whole: Path, tokenizer: Path, unfinished: Path, out: Path, *, from_step: int) -> None:
    """Resume a run and compare it with the uninterrupted one."""
    tokens: list[int] = []
    train_run(
        out,
        unfinished,
        tokenizer,
        dropout=True,
        progress=lambda moment: tokens.append(moment.tokens),
    )
    assert len(tokens) == STEPS - from_step
    check_same_run(out, whole)
    assert len(list(unfinished.glob("checkpoint-*"))) <= 2


def test_a_run_killed_in_the_second_epoch_resumes_exactly(killable_run, tokenizer, tmp_path):
    unfinished = tmp_path / "unfinished"
    running = started("-m", "tests.train.killable", tmp_path / "killed", unfinished, tokenizer)
    kill_at(running, lambda line: line.isdigit() and int(line) >= 17 * 4 * CONTEXT)
    point = find_resume_point(unfinished, "this run")
    assert point is not None
    # The kill may come up to three steps after the last saved step.
    step = int(point.name.removeprefix("checkpoint-"))
    assert 14 <= step <= 20
    resume(killable_run / "whole", tokenizer, unfinished, tmp_path / "again", from_step=step)


@pytest.mark.parametrize("at", [5, STEPS])
def test_sigterm_ends_a_run_after_the_current_step_with_a_checkpoint(
    killable_run, tokenizer, tmp_path, at
):
    """The signal comes in the first epoch, without a due checkpoint, or in the last step."""
    unfinished = tmp_path / "unfinished"

    def terminate(moment) -> None:
        if moment.tokens == at * 4 * CONTEXT:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Preempted, match=f"after step {at} of {STEPS}, with a checkpoint"):
        train_run(
            tmp_path / "x",
            unfinished,
            tokenizer,
            dropout=True,
            progress=terminate,
        )
    point = find_resume_point(unfinished, "this run", model_steps=KEPT)
    assert point is not None
    assert point.name == f"checkpoint-{at}"
    resume(killable_run / "whole", tokenizer, unfinished, tmp_path / "out", from_step=at)


def test_resume_with_tied_embeddings_misses_no_weight(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(killable, "SHAPE", tiny_shape(tie_embeddings=True))
    warnings: list[str] = []
    monkeypatch.setattr(trainer.logger, "warning", warnings.append)
    train_run(tmp_path / "whole", None, tokenizer, dropout=False)
    unfinished = tmp_path / "unfinished"
    with pytest.raises(Stopped):
        train_run(tmp_path / "x", unfinished, tokenizer, dropout=False, progress=stop_at(8))
    train_run(tmp_path / "again", unfinished, tokenizer, dropout=False)
    check_same_run(tmp_path / "again", tmp_path / "whole")
    assert not warnings


def test_a_checkpoint_of_another_run_is_rejected(killable_run):
    with pytest.raises(InputError, match="belongs to the run this run, this one is another"):
        find_resume_point(killable_run / "left", "another")


@pytest.fixture(params=["900k", "1200k"])
def small_disk(request, tmp_path):
    """A small file system: one fills up during the second checkpoint's weights, the other during
    its optimiser, whose file torch fails to finish without a reason."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={request.param}", "tmpfs", str(folder)],
        capture_output=True,
    )
    if not mounted or mounted.returncode:
        pytest.skip("no small file system can be mounted here")
    yield folder
    # Torch's failed file writer keeps the file open as long as the error exists.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_keeps_the_previous_checkpoint(small_disk, tmp_path, tokenizer):
    unfinished = small_disk / "unfinished"
    with pytest.raises(InputError, match="the disk is full") as error:
        train_run(tmp_path / "out", unfinished, tokenizer, dropout=False)
    assert "resumes from the last whole checkpoint" in str(error.value)
    assert f" free on {small_disk}; " in str(error.value)
    assert not list(unfinished.glob("checkpoint-6")), "a partial checkpoint must be deleted"
    whole = sorted(path.parent.name for path in unfinished.glob("checkpoint-*/spikein.json"))
    assert whole, "the disk has room for at least one checkpoint"
    point = find_resume_point(unfinished, "this run", model_steps=KEPT)
    assert point is not None
    assert point.name in whole
    assert all(path.is_dir() for path in unfinished.glob("step-*"))


def test_folders_without_a_checkpoint_give_no_resume_point(tmp_path):
    assert find_resume_point(None, "x") is None
    assert find_resume_point(tmp_path / "nothing", "x") is None
    (tmp_path / "checkpoint-x").mkdir()
    (tmp_path / "other").mkdir()
    assert find_resume_point(tmp_path, "x") is None
    assert (tmp_path / "other").is_dir()
