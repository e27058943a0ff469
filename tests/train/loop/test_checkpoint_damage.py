"""A damaged checkpoint is never used, the one before it is: said, and with the same result."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.train.killable import KEPT, check_same_run, go
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
def go_on(killable_run, tokenizer, tmp_path):
    """Damages a copy of what was left, runs to the end, and returns what was said.

    The result is that of the run that was never stopped, bit for bit.
    """

    def damaged(damage: Callable[[Path], None]) -> str:
        left, notices = tmp_path / "left", []
        shutil.copytree(killable_run / "left", left)
        damage(left)
        go(tmp_path / "out", left, tokenizer, dropout=True, notice=notices.append)
        check_same_run(tmp_path / "out", killable_run / "whole")
        return " ".join(notices)

    return damaged


@pytest.mark.parametrize("file", FILES)
def test_every_damage_to_every_file_is_seen(killable_run, tmp_path, file):
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


def test_what_is_damaged_how_and_what_is_used_instead_are_said(go_on):
    said = go_on(lambda left: cut(left / "checkpoint-9" / "optimizer.pt"))
    assert said.startswith("The checkpoint of step 9 cannot be used: optimizer.pt has ")
    assert said.endswith("Training resumes from the checkpoint of step 6.")


def test_a_damaged_model_kept_along_the_way_is_never_published(go_on):
    """The checkpoint behind it is not used, so that it is made again."""
    said = go_on(lambda left: flip(left / "step-7" / "model.safetensors"))
    assert "step 9 cannot be used: of the model kept at step 7, " in said


def test_without_a_whole_checkpoint_the_run_begins_anew_and_says_so(go_on):
    def both(left: Path) -> None:
        shutil.rmtree(left / "step-7")
        remove(left / "checkpoint-6" / "log.parquet")

    said = go_on(both)
    assert "step 9 cannot be used: of the model kept at step 7, it is missing" in said
    assert "step 6 cannot be used: log.parquet is missing. No complete checkpoint is left" in said


def test_nothing_is_said_of_whole_checkpoints(go_on):
    assert go_on(lambda left: None) == ""


def test_an_older_whole_checkpoint_goes_only_when_the_new_one_is_whole(
    killable_run, tokenizer, tmp_path, monkeypatch
):
    """A kill between the trainer's part of the third and the mark that it is whole."""

    class Killed(Exception):
        pass

    def killed(path: Path, rows: object) -> None:
        raise Killed

    monkeypatch.setattr("train.loop.resume.write_log", killed)
    shutil.copytree(killable_run / "left", tmp_path / "left")
    with pytest.raises(Killed):
        go(tmp_path / "out", tmp_path / "left", tokenizer, dropout=True)
    whole = {path.parent.name for path in tmp_path.glob("left/checkpoint-*/spikein.json")}
    assert whole == {"checkpoint-6", "checkpoint-9"}
