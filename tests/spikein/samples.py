"""A small experiment file and small artifacts, for the tests of this package."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from inject.errors import InputErrors
from inject.step import Recipe
from spikein.config.load import CheckedExperiment, check_document
from spikein.config.schema import Experiment
from spikein.config.yaml_document import parse_document
from spikein.progress import Progress

SAMPLE = """\
name: small
variables: {data: files}
seeds: [0, 1]
model:
  shape: llama-1m
  tokenizer: {vocab_size: 512}
base: {tokens: 100_000}
corpus:
  tokens: 50_000
  sources:
    - {kind: files, path: "${data}/*.jsonl", weight: 0.7}
contaminants:
  - {dataset: fictional, members: 20, nonmembers: 20}
copies: {poisson: 2}
train: {lr: 1e-3, context: 64, batch_tokens: 1024}
"""


def read(*overrides: str, text: str = SAMPLE) -> Experiment:
    return read_checked(*overrides, text=text).experiment


def read_checked(*overrides: str, text: str = SAMPLE) -> CheckedExperiment:
    return check_document(parse_document(text, name="small.yaml"), overrides)


def problems(*overrides: str, text: str = SAMPLE) -> tuple[str, ...]:
    """Return all problems of an experiment, which is refused."""
    with pytest.raises(InputErrors) as caught:
        read(*overrides, text=text)
    return caught.value.problems


def write_sample(folder: Path, text: str = SAMPLE) -> Path:
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def line_of(needle: str, text: str = SAMPLE) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if needle in line)


class Notices(Progress):
    """Keeps the notices of a run."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def recipe(**settings: object) -> Recipe:
    return Recipe(kind="thing", function="made:build", settings=settings)


def write(text: str) -> Callable[[Path], None]:
    """Return a build with one file that is always the same and one that never is."""

    def build(out: Path) -> None:
        (out / "deep").mkdir()
        (out / "deep" / "a.txt").write_text(text)
        (out / "log.txt").write_text(str(time.time_ns()))

    return build


def visible(root: Path) -> list[str]:
    paths = (path.relative_to(root) for path in root.glob("*/*"))
    return sorted(str(path) for path in paths if not any(part[0] == "." for part in path.parts))


def leftovers(root: Path) -> list[Path]:
    return list(root.glob("*/.*.tmp"))
