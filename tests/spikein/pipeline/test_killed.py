"""Kill -9 in every kind of step of a real experiment, then run to the end: the same results."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spikein.store.artifact import open_artifact
from tests.spikein.tiny import write_tiny

KINDS = (
    "tokenizer", "examples", "corpus", "plan", "audit", "model", "frequency", "statistics",
    "scores", "results", "accuracy_gain", "trajectory", "figures",
)  # fmt: skip


def start(path: Path, root: Path) -> subprocess.Popen[str]:
    command = [
        sys.executable, "-m", "spikein.cli.main", "run", str(path),
        "--store", str(root / "store"), "--runs", str(root / "runs"),
    ]  # fmt: skip
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=Path(__file__).resolve().parents[3],
    )


def kill_in(kind: str, path: Path, root: Path) -> None:
    """Start a run and kill it with signal 9 as soon as it says that it begins a step."""
    process = start(path, root)
    assert process.stderr is not None
    for line in process.stderr:
        if f"] {kind} " in line and line.rstrip().endswith("…"):
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL, f"never began a step of kind {kind}"


def finish(path: Path, root: Path) -> None:
    process = start(path, root)
    _, error = process.communicate()
    assert process.returncode == 0, error


def contents(root: Path) -> dict[str, str]:
    """Digest of the recipe → digest of the content, of every artifact."""
    found = {}
    for folder in (root / "store").glob("[a-z]*/*-????????????"):
        manifest = open_artifact(folder).manifest
        found[manifest.digest] = manifest.content
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_in_every_step_and_run_again(tmp_path):
    reference, broken = tmp_path / "reference", tmp_path / "broken"
    reference.mkdir()
    broken.mkdir()
    path = write_tiny(tmp_path)
    along = "train: {checkpoints: {fractions: [0.3, 0.6]},"
    path.write_text(path.read_text().replace("train: {", along) + "execution: {resume_every: 4}\n")
    finish(path, reference)
    built: dict[Path, int] = {}
    for kind in KINDS:
        kill_in(kind, path, broken)
        assert not (broken / "runs" / "tiny" / "latest").exists()
        for manifest in (broken / "store").glob("[a-z]*/*-????????????/manifest.json"):
            # What was finished before is neither lost nor built again.
            stamp = manifest.stat().st_mtime_ns
            assert built.setdefault(manifest, stamp) == stamp
    finish(path, broken)
    assert contents(broken) == contents(reference)
    visible = [
        entry.name
        for entry in (broken / "store").glob("[a-z]*/*")
        if not entry.name.startswith(".") and not (entry / "manifest.json").is_file()
    ]
    assert visible == []
    assert (broken / "runs" / "tiny" / "latest" / "report.html").is_file()
    tables = ("findings", "scores", "exposures", "examples")
    for name in (f"{table}.parquet" for table in tables):
        ours, theirs = (root / "runs" / "tiny" / "latest" / name for root in (broken, reference))
        assert ours.read_bytes() == theirs.read_bytes(), name
