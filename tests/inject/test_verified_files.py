"""The manifest of a checkpoint: it is written last, and detects all changes."""

import json
import os
from pathlib import Path

import pytest

from inject.verified_files import IntegrityError, read_facts, seal, verify


def test_files_are_flushed_before_the_manifest(tmp_path, monkeypatch):
    """The order of the system calls, observed from outside."""
    calls: list[str] = []
    plain, replace = os.fsync, os.replace

    def fsync(handle: int) -> None:
        calls.append(os.readlink(f"/proc/self/fd/{handle}"))
        plain(handle)

    def renamed(source: Path, other: Path) -> None:
        calls.append(f"-> {other}")
        replace(source, other)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not tell the name of an open file")
    folder = tmp_path / "checkpoint-6"
    folder.mkdir()
    for name in ("model.safetensors", "optimizer.pt", "log.parquet"):
        (folder / name).write_text(name)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", renamed)
    seal(folder, {})
    at = calls.index(f"-> {folder / 'spikein.json'}")
    for path in folder.iterdir():
        if path.name != "spikein.json":
            assert calls.index(str(path)) < at
    assert str(folder) in calls[:at]
    assert str(folder) in calls[at:]


def test_changed_manifest_is_rejected(tmp_path):
    folder = tmp_path / "checkpoint-3"
    folder.mkdir()
    (folder / "a").write_text("1")
    seal(folder, {"identity": "this run"})
    verify(folder)
    manifest = json.loads((folder / "spikein.json").read_text())
    manifest["facts"]["identity"] = "another run"
    (folder / "spikein.json").write_text(json.dumps(manifest))
    with pytest.raises(IntegrityError, match=r"spikein\.json was changed"):
        read_facts(folder)


def test_additional_checkpoint_file_is_damage(tmp_path):
    folder = tmp_path / "checkpoint-3"
    (folder / "global_step3").mkdir(parents=True)
    (folder / "global_step3" / "states.pt").write_text("1")
    seal(folder, {})
    (folder / ".nfs0001").write_text("left by a file system")
    verify(folder)
    (folder / "global_step3" / "more.pt").write_text("2")
    with pytest.raises(IntegrityError, match=r"global_step3/more\.pt was added"):
        verify(folder)
