"""Kill -9 in a real experiment's kinds of steps, then run to the end: the same results."""

import multiprocessing
import multiprocessing.connection
import os
import signal
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

import pytest

from spikein.store.artifact import open_artifact
from tests.spikein.tiny import write_tiny

KINDS = (
    "tokenizer", "examples", "corpus", "plan", "model", "statistics", "scores", "results",
    "trajectory",
)  # fmt: skip
RUNNER = multiprocessing.get_context("forkserver")
"""Each run is a separate process, forked from one that has imported the modules of a run."""
RUNNER.set_forkserver_preload(["tests.spikein.preloaded"])


def run_in_child(path: Path, root: Path, output: multiprocessing.connection.Connection) -> None:
    from spikein.cli.main import app

    os.dup2(output.fileno(), 2)
    app(["run", str(path), "-v", "--store", str(root / "store"), "--runs", str(root / "runs")])


def start(path: Path, root: Path) -> tuple[BaseProcess, IO[str]]:
    """Start a run in its own process; return the process and its output."""
    reader, writer = RUNNER.Pipe(duplex=False)
    process = RUNNER.Process(target=run_in_child, args=(path, root, writer))
    process.start()
    writer.close()
    return process, os.fdopen(os.dup(reader.fileno()))


def kill_in(kind: str, path: Path, root: Path) -> None:
    """Start a run and kill it with signal 9 as soon as it logs the start of a step."""
    process, output = start(path, root)
    for line in output:
        if f"] {kind} " in line and line.rstrip().endswith("…"):
            process.kill()
            break
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"never began a step of kind {kind}"


def finish(path: Path, root: Path) -> None:
    process, output = start(path, root)
    lines = output.read()
    process.join()
    assert process.exitcode == 0, lines


def contents(root: Path) -> dict[str, str]:
    """Digest of the recipe → digest of the content, of every artifact."""
    manifests = (
        open_artifact(folder).manifest for folder in (root / "store").glob("[a-z]*/*-????????????")
    )
    return {manifest.digest: manifest.content for manifest in manifests}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_killed_in_each_kind_of_step_gives_the_same_results(tmp_path):
    reference, broken = tmp_path / "reference", tmp_path / "broken"
    reference.mkdir()
    broken.mkdir()
    path = write_tiny(tmp_path)
    text = path.read_text().replace("tokens: 40_000", "tokens: 16_000")
    text = text.replace("train: {", "train: {checkpoints: {fractions: [0.6]},")
    path.write_text(f"{text}training_runtime: {{resume_every: 4}}\n")
    finish(path, reference)
    built: dict[Path, int] = {}
    for kind in KINDS:
        kill_in(kind, path, broken)
        assert not (broken / "runs" / "tiny" / "latest").exists()
        for manifest in (broken / "store").glob("[a-z]*/*-????????????/manifest.json"):
            # Finished steps are neither lost nor built again.
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
    for name in ("findings", "scores", "exposures", "examples"):
        resumed, uninterrupted = (
            root / "runs" / "tiny" / "latest" / f"{name}.parquet" for root in (broken, reference)
        )
        assert resumed.read_bytes() == uninterrupted.read_bytes(), name
