"""A run resumes from the checkpoint before a damaged one, with a notice and the same result."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.train.killable import KEPT, check_same_run, train_run
from train.loop.resume import find_resume_point

pytestmark = pytest.mark.slow

FILES = (
    "model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json",
    "log.parquet", "exposures-0.parquet", "spikein.json",
)  # fmt: skip


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) * 2 // 3] ^= 0x10
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def replace_by_link(path: Path) -> None:
    other = path.parent.parent / f"{path.name}.elsewhere"
    path.rename(other)
    flip(other)
    path.symlink_to(other)


@pytest.fixture
def resume_damaged(killable_run, tokenizer, tmp_path):
    """Return a function that damages a copy of a stopped run, completes it and returns its notices.

    The result is bit-identical to that of the complete run.
    """

    def damaged(damage: Callable[[Path], None]) -> str:
        left, notices = tmp_path / "left", []
        shutil.copytree(killable_run / "left", left)
        damage(left)
        train_run(tmp_path / "out", left, tokenizer, dropout=True, notice=notices.append)
        check_same_run(tmp_path / "out", killable_run / "whole")
        return " ".join(notices)

    return damaged


@pytest.mark.parametrize("file", FILES)
def test_damage_to_any_file_is_detected(killable_run, tmp_path, file):
    for damage in (cut, flip, empty, remove, replace_by_link):
        left = tmp_path / damage.__name__
        shutil.copytree(killable_run / "left", left)
        point = find_resume_point(left, "this run", model_steps=KEPT)
        assert point is not None
        assert point.name == "checkpoint-9"
        damage(point / file)
        older = find_resume_point(left, "this run", model_steps=KEPT)
        assert older is not None, f"{damage.__name__}: no older checkpoint was found"
        assert older.name == "checkpoint-6", damage.__name__
        assert not point.exists()


def test_notice_names_the_damage_and_the_checkpoint_used_instead(resume_damaged):
    text = resume_damaged(lambda left: cut(left / "checkpoint-9" / "optimizer.pt"))
    assert text.startswith("The checkpoint of step 9 cannot be used: optimizer.pt has ")
    assert text.endswith("Training resumes from the checkpoint of step 6.")


def test_a_damaged_intermediate_model_is_never_published(resume_damaged):
    """The following checkpoint is not used, so the model is trained again."""
    text = resume_damaged(lambda left: flip(left / "step-7" / "model.safetensors"))
    assert "step 9 cannot be used: of the model kept at step 7, " in text


def test_a_run_without_a_complete_checkpoint_restarts_with_a_notice(resume_damaged):
    def both(left: Path) -> None:
        shutil.rmtree(left / "step-7")
        remove(left / "checkpoint-6" / "log.parquet")

    text = resume_damaged(both)
    assert "step 9 cannot be used: of the model kept at step 7, it is missing" in text
    assert "step 6 cannot be used: log.parquet is missing. No complete checkpoint is left" in text


def test_undamaged_checkpoints_give_no_notice(resume_damaged):
    assert resume_damaged(lambda left: None) == ""


def test_older_checkpoints_are_deleted_only_after_the_new_one_is_complete(
    killable_run, tokenizer, tmp_path, monkeypatch
):
    """The kill comes after the trainer's part of the third checkpoint and before its seal."""

    class Killed(Exception):
        pass

    def killed(path: Path, rows: object) -> None:
        raise Killed

    monkeypatch.setattr("train.loop.resume.write_log", killed)
    shutil.copytree(killable_run / "left", tmp_path / "left")
    with pytest.raises(Killed):
        train_run(tmp_path / "out", tmp_path / "left", tokenizer, dropout=True)
    whole = {path.parent.name for path in tmp_path.glob("left/checkpoint-*/spikein.json")}
    assert whole == {"checkpoint-6", "checkpoint-9"}
