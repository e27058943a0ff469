"""A whole experiment of seconds: generated texts, invented facts, a model of a few thousand
parameters."""

import json
from pathlib import Path

import spikein
from spikein.api.run import RunResult
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
  tokenizer: {{train: 300}}
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
    """Run the tiny experiment of a folder in this process, its store and its runs beside it."""
    return spikein.run(
        folder / "tiny.yaml",
        overrides=overrides,
        store=folder / "store",
        runs=folder / "runs",
        progress=False,
    )
