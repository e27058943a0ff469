"""A whole experiment of seconds: generated texts, invented facts, a model of a few thousand
parameters; as a graph, as some of its artifacts, or as a run."""

import json
from pathlib import Path

import spikein
from inject.step import Step
from spikein.api.run import RunResult
from spikein.config.load import read_experiment
from spikein.executors import get_executor
from spikein.pipeline.build_graph import ExperimentGraph, build_graph
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Artifact, Store
from tests.conftest import make_texts

SHAPE = """
architecture: {architecture}
hidden: 16
layers: 1
heads: 2
intermediate: 32
context: 128
tie_embeddings: true
"""

EXPERIMENT = """
name: tiny
model:
  shape: {folder}/shape.yaml
  tokenizer: {{vocab_size: 300}}
base: {{tokens: 4_000, lr: 1.0e-2}}
corpus:
  tokens: 40_000
  sources:
    - {{kind: files, path: "{folder}/texts.jsonl"}}
contaminants:
  - {{dataset: fictional, members: 24, nonmembers: 24}}
copies: {{poisson: 2}}
pool: {{long_examples: split}}
train: {{lr: 1.0e-2, context: 64, batch_tokens: 1024}}
detect: {{detectors: [loss, lowercase, reference, "min_k:k=0.2", dc_pdd, blind]}}
analysis: {{replicates: 100, min_members: 5}}
"""
LIGHT = ("detect.detectors=[loss]", "analysis.task_accuracy=false")
"""The fewest passes and analyses, for tests of something else."""


def write_tiny(folder: Path, *, architecture: str = "llama") -> Path:
    """Write texts, shape and experiment file into a folder; return the experiment file."""
    with (folder / "texts.jsonl").open("w") as file:
        for text in make_texts(900, seed=5, words=60):
            file.write(json.dumps({"text": text, "meta": {}}) + "\n")
    (folder / "shape.yaml").write_text(SHAPE.format(architecture=architecture))
    path = folder / "tiny.yaml"
    path.write_text(EXPERIMENT.format(folder=folder))
    return path


def run(folder: Path, *overrides: str) -> RunResult:
    """Run the tiny experiment of a folder in this process, with its store and its runs there."""
    return spikein.run(
        folder / "tiny.yaml",
        overrides=overrides,
        store=folder / "store",
        runs=folder / "runs",
        progress=False,
    )


def graph_of(folder: Path, *overrides: str) -> ExperimentGraph:
    """Return the graph of a folder's experiment; builds nothing."""
    return build_graph(read_experiment(folder / "tiny.yaml", overrides))


def build(folder: Path, *goals: Step) -> list[Artifact]:
    """Build steps, with their inputs, in the store of a folder."""
    store = Store(folder / "store")
    with store.in_use():
        report = get_executor("in-process").run(Graph(goals=goals), store, Progress())
    return [report.artifact(goal) for goal in goals]


def stored(folder: Path, kind: str, label: str = "*") -> list[Path]:
    """Return the folders of a kind of artifact in the store of a folder."""
    return sorted((folder / "store" / kind).glob(f"{label}-????????????"))
