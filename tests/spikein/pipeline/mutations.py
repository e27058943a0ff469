"""All settings keys, another value of each, and the steps that read it, as claimed by hand.

The claims are in `mutations.csv`, one row per key; ` ; ` separates the overrides of a setup. A step
reads a key if its artifact would change although its inputs stay the same; later steps change with
their inputs.
"""

import csv
from pathlib import Path
from typing import NamedTuple

EVERYTHING = """
name: everything
variables: {{unused: 1}}
model: {{shape: {folder}/shape.yaml, tokenizer: {{vocab_size: 300}}}}
base: {{tokens: 4_000, context: 64, batch_tokens: 1024}}
corpus:
  tokens: 40_000
  sources:
    - {{kind: files, path: "{folder}/texts.jsonl"}}
    - {{kind: files, path: "{folder}/more.jsonl"}}
contaminants:
  - {{dataset: boolq, path: "{folder}/boolq.jsonl", members: 24, nonmembers: 24}}
  - {{dataset: rows, name: own, path: "{folder}/rows.jsonl", members: 9, nonmembers: 9}}
  - {{dataset: fictional, members: 24, nonmembers: 24}}
copies: {{poisson: 2}}
twins: {{clean: true, retrained: 0.5, shadows: 2}}
pool: {{long_examples: truncate}}
train: {{lr: 1.0e-2, context: 64, batch_tokens: 1024, checkpoints: {{steps: [3]}}}}
analysis: {{replicates: 100}}
"""


class Case(NamedTuple):
    """One changed key."""

    reads: str
    """The steps that read it."""
    change: str
    """The override that changes it."""
    setup: tuple[str, ...] = ()
    """Overrides before and after the change, if the key needs other keys."""
    reason: str = ""
    """Why no step reads it."""


IMPORTED = ("corpus.sources=[]", "model.tokenizer={folder}/tok")
PRETRAINED = ("base=null", "model={{pretrained: {folder}/a}}")
NO_SHADOWS = ("twins.shadows=0",)
NEIGHBOURS = ("detect.neighbours={{model: {folder}/a}}",)
LORA = ("train.mode=lora",)
WHOLE = {
    "megatron": "{{kind: megatron, path: {folder}/meg}}",
}
SOURCES = {
    "docstrings": "[{{kind: docstrings, packages: [filelock]}}]",
    "hub": "[{{kind: hub, id: {folder}/local}}]",
}


def unlearning(more: str = "") -> tuple[str, ...]:
    """Overrides with a section `unlearning`."""
    methods = "[{{method: npo, retain_weight: 1.0}}]"
    section = f"{{{{forget: {{{{share: 0.5}}}}, methods: {methods}{more}}}}}"
    return ("twins.retrained=null", f"unlearning={section}")


def sources(kind: str) -> tuple[str, ...]:
    return (f"corpus.sources={SOURCES[kind]}",)


def imports(kind: str) -> tuple[str, ...]:
    return (*IMPORTED, f"corpus.imported={WHOLE[kind]}")


def variant(text: str) -> tuple[str, ...]:
    return (*NO_SHADOWS, f"variants.of=[{{{{{text}}}}}, {{{{kind: whole}}}}]")


LOCAL = "kind: paraphrase, by: model, model: {folder}/a"


def _read_cases() -> dict[str, Case]:
    def override(text: str) -> str:
        """Double all braces except those of `{folder}`, for `str.format`."""
        doubled = text.replace("{", "{{").replace("}", "}}")
        return doubled.replace("{{folder}}", "{folder}")

    with Path(__file__).with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        return {
            row["key"]: Case(
                row["reads"],
                override(row["change"]),
                tuple(map(override, row["setup"].split(" ; ") if row["setup"] else ())),
                row["reason"],
            )
            for row in csv.DictReader(file)
        }


CASES = _read_cases()
"""By key; `[kind]` names the member of a union, lists are named without an index."""
