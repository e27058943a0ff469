"""One finished experiment for the whole suite: built once per session for all test processes.

It has a single arm with seed 0: a base model, the arm with checkpoints after steps 13 and 20 of 40,
a clean twin, a retrained twin without half of the members, two shadow models. The texts are 24
members and 24 non-members of invented facts with 7 rows held out, and 10 and 12 rows of the file
`rows.jsonl`, two per passage, with 5 held out; copy counts are 1, 2 and 5. Detectors read every
column of the token table, the base model and the shadow models; all dataset detectors answer, and
both models answer the closed questions.

`shared_run` is for reading. A test that runs, renders or spoils something requests `copied_run`:
its own copy, whose large files are hard links and must not be edited in place.
"""

import json
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from inject.step import Step
from spikein.api.run import RunResult
from spikein.config.load import read_experiment
from spikein.pipeline.arm_nodes import ArmNodes
from spikein.pipeline.build_graph import ExperimentGraph, build_graph
from spikein.store.store import Store
from tests.conftest import make_texts
from tests.spikein import tiny

DETECTORS = (
    "[loss, lowercase, reference, 'min_k:k=0.2', dc_pdd, blind, lira, wbc, ez_mia, gap_k, acmia, "
    "'acmia:beta=2:form=contrast', tag_tab]"
)
HELD_OUT = {"fictional": 7, "own": 5}
CONTAMINATION = ("contaminants.0.held_out=7", "copies={levels: [1, 2, 5]}")
MODELS = (
    *CONTAMINATION,
    "train.checkpoints={steps: [13, 20]}",
    "detect.inverse_temperatures=[2]",
)
"""Of copies of the run: overrides under which corpus and plan, both models and their token
statistics are stored."""
OVERRIDES = (
    *MODELS,
    "twins={clean: true, retrained: 0.5, shadows: 2}",
    f"detect.detectors={DETECTORS}",
    "analysis.dataset_detectors=all",
    "analysis.shards=4",
    "analysis.shuffles=3",
)
OWN_ROWS = """
  - dataset: rows
    name: own
    path: {folder}/rows.jsonl
    fields: {{text: text, group: group, id: id}}
    template: "{{text}}"
    members: 10
    nonmembers: 12
    held_out: 5
"""


class SharedRun(NamedTuple):
    """A finished run: its experiment file, its store and its folder of runs are in `root`."""

    root: Path
    graph: ExperimentGraph

    @property
    def experiment(self) -> Path:
        """The experiment file; `OVERRIDES` belong to it."""
        return self.root / "tiny.yaml"

    @property
    def texts(self) -> str:
        """The file of background texts, which copies share."""
        return str(self.graph.experiment.corpus.sources[0].path)

    @property
    def store(self) -> Store:
        """The store with every artifact."""
        return Store(self.root / "store")

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.root / "runs" / "tiny" / "1"

    @property
    def node(self) -> ArmNodes:
        """Its single arm."""
        (node,) = self.graph.nodes
        return node

    def stored(self, step: Step) -> Path:
        """The folder of a step's artifact."""
        artifact = self.store.find(step.digest, kind=step.kind)
        assert artifact is not None, step.name
        return artifact.path

    def artifacts(self, kind: str) -> list[Path]:
        """The folders of all artifacts of a kind."""
        return sorted((self.root / "store" / kind).glob("*-????????????"))

    def run(self, *overrides: str) -> RunResult:
        """Run its experiment again, with further overrides; only for copies."""
        return tiny.run(self.root, *OVERRIDES, *overrides)


def copy_of(run: SharedRun, root: Path) -> SharedRun:
    """Copy a run to its own folder; tables and weights are hard links."""
    for name in ("store", "runs"):
        shutil.copytree(run.root / name, root / name, symlinks=True, copy_function=_linked)
    shutil.copy(run.experiment, root)
    return SharedRun(root, run.graph)


def _linked(source: str, target: str) -> None:
    if Path(source).suffix in {".parquet", ".arrow", ".safetensors", ".bin", ".npy", ".png"}:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def make(root: Path) -> None:
    """Run the experiment in a folder."""
    path = tiny.write_tiny(root)
    with (root / "rows.jsonl").open("w") as rows:
        for number, text in enumerate(make_texts(60, seed=11, words=25)):
            row = {"id": str(number), "text": text, "group": f"passage {number // 2}"}
            rows.write(json.dumps(row) + "\n")
    own = OWN_ROWS.format(folder=root)
    path.write_text(path.read_text().replace("\ncopies: {", f"{own}copies: {{"))
    tiny.run(root, *OVERRIDES)


def opened(root: Path) -> SharedRun:
    """Return the run in a folder."""
    return SharedRun(root, build_graph(read_experiment(root / "tiny.yaml", OVERRIDES)))
