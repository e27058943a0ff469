"""A damaged checkpoint is never used, the one before it is: said, and with the same result."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from inject.stream.exposures import read_exposures
from tests.train.killable import CONTEXT, KEPT, go
from train.loop.log import read_log
from train.loop.record import TrainingProgress
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


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def place(tmp_path_factory, tiny_tokenizer, one_thread) -> Path:
    """A run that nobody stopped (`whole`), and one that ended after step 8 (`left`)."""

    class Stop(Exception):
        pass

    def stop(moment: TrainingProgress) -> None:
        if moment.tokens >= 8 * 4 * CONTEXT:
            raise Stop

    root = tmp_path_factory.mktemp("damage")
    tiny_tokenizer.save_pretrained(root / "tokenizer")
    go(root / "whole", None, root / "tokenizer", dropout=True)
    with pytest.raises(Stop):
        go(root / "x", root / "left", root / "tokenizer", dropout=True, progress=stop)
    assert {path.name for path in root.glob("left/*-*")} == {
        "checkpoint-3", "checkpoint-6", "step-2", "step-7",
    }  # fmt: skip
    return root


def again(place: Path, tmp_path: Path, damage: Callable[[Path], None], *, told=None) -> Path:
    """Damage a copy of what was left, and run to the end."""
    shutil.copytree(place / "left", tmp_path / "left", symlinks=True)
    damage(tmp_path / "left")
    more = {} if told is None else {"notice": told.append}
    go(tmp_path / "out", tmp_path / "left", place / "tokenizer", dropout=True, **more)
    return tmp_path / "out"


def check_same(one: Path, other: Path) -> None:
    for model in ("", *(f"step-{step}" for step in KEPT)):
        names = sorted(path.name for path in (one / model).iterdir())
        assert names == sorted(path.name for path in (other / model).iterdir())
        weights, others = (load_file(path / model / "model.safetensors") for path in (one, other))
        assert all(torch.equal(weights[name], others[name]) for name in others)
    assert read_exposures(one).equals(read_exposures(other))
    logs = [read_log(path) for path in (one, other)]
    assert [row[:4] for row in logs[0]] == [row[:4] for row in logs[1]]


@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (cut, "model.safetensors"),
        (flip, "model.safetensors"),
        (remove, "model.safetensors"),
        (replace_by_link, "model.safetensors"),
        (flip, "optimizer.pt"),
        (remove, "optimizer.pt"),
        (empty, "scheduler.pt"),
        (remove, "scheduler.pt"),
        (remove, "rng_state.pth"),
        (cut, "trainer_state.json"),
        (flip, "log.parquet"),
        (remove, "exposures-0.parquet"),
    ],
)
def test_any_damage_to_the_newest_checkpoint_gives_the_result_of_a_run_never_stopped(
    place, tmp_path, file, damage
):
    out = again(place, tmp_path, lambda left: damage(left / "checkpoint-6" / file))
    check_same(out, place / "whole")


@pytest.mark.parametrize("file", FILES)
def test_every_damage_to_every_file_is_seen(place, tmp_path, file):
    for damage in (cut, flip, empty, remove, replace_by_link):
        left = tmp_path / damage.__name__
        shutil.copytree(place / "left", left)
        found = find_resume_point(left, "this run", kept=KEPT)
        assert found is not None
        assert found.step == 6
        damage(left / "checkpoint-6" / file)
        found = find_resume_point(left, "this run", kept=KEPT)
        assert found is not None, f"{damage.__name__}: no older checkpoint was found"
        assert found.step == 3, damage.__name__


@pytest.mark.parametrize("damage", [flip, remove])
def test_a_damaged_model_kept_along_the_way_is_never_published(place, tmp_path, damage):
    out = again(place, tmp_path, lambda left: damage(left / "step-2" / "model.safetensors"))
    check_same(out, place / "whole")


def test_what_is_damaged_how_and_what_is_used_instead_are_said(place, tmp_path):
    told: list[str] = []
    again(place, tmp_path, lambda left: cut(left / "checkpoint-6" / "optimizer.pt"), told=told)
    [text] = told
    assert text.startswith("The checkpoint of step 6 cannot be used: optimizer.pt has ")
    assert text.endswith("Training goes on from the checkpoint of step 3.")


def test_without_a_whole_checkpoint_the_run_begins_anew_and_says_so(place, tmp_path):
    def both(left: Path) -> None:
        flip(left / "checkpoint-6" / "model.safetensors")
        remove(left / "checkpoint-3" / "log.parquet")

    told: list[str] = []
    out = again(place, tmp_path, both, told=told)
    assert "step 6 cannot be used: the content of model.safetensors was changed" in told[0]
    assert "step 3 cannot be used: log.parquet is missing. No whole one is left" in told[0]
    check_same(out, place / "whole")


def test_nothing_is_said_of_whole_checkpoints(place, tmp_path):
    told: list[str] = []
    out = again(place, tmp_path, lambda left: None, told=told)
    assert told == []
    check_same(out, place / "whole")


def test_an_older_whole_checkpoint_goes_only_when_the_new_one_is_whole(
    place, tmp_path, monkeypatch
):
    """A kill between the trainer's part of the third and the mark that it is whole."""

    class Killed(Exception):
        pass

    def killed(path: Path, rows: object) -> None:
        raise Killed

    monkeypatch.setattr("train.loop.resume.write_log", killed)
    shutil.copytree(place / "left", tmp_path / "left")
    with pytest.raises(Killed):
        go(tmp_path / "out", tmp_path / "left", place / "tokenizer", dropout=True)
    whole = {path.parent.name for path in tmp_path.glob("left/checkpoint-*/spikein.json")}
    assert whole == {"checkpoint-3", "checkpoint-6"}
