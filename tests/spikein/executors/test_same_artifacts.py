"""A whole experiment by workers: every file is that of the plain executor, to the byte."""

from pathlib import Path

import pytest

import spikein
from spikein.store.artifact import open_artifact
from tests.spikein.tiny import write_tiny

SMALL = (
    "corpus.tokens=20000", "twins.clean=true", "train.checkpoints={steps: [2]}", "base=null",
    "train.mode=pretrain", "detect.detectors=[loss, dc_pdd, blind, grad_norm]",
    "copies={levels: [1, 2]}", "variants.of=[{kind: whole}, {kind: truncated, share: 0.5}]",
)  # fmt: skip


def contents(store: Path) -> dict[str, str]:
    found = [open_artifact(path.parent).manifest for path in store.glob("[!.]*/*/manifest.json")]
    return {f"{one.kind} {one.digest}": one.content for one in found}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_experiment_by_workers_has_the_artifacts_of_the_plain_executor(tmp_path):
    experiment = write_tiny(tmp_path)
    for name in ("local", "in-process"):
        spikein.run(
            experiment,
            overrides=(*SMALL, f"executor.kind={name}"),
            store=tmp_path / name,
            runs=tmp_path / f"runs-{name}",
            progress=False,
        )
    assert contents(tmp_path / "local") == contents(tmp_path / "in-process")
