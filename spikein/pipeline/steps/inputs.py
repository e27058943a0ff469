"""How steps open their inputs: numbered ones, the corpus, and the examples as tokens.

Where an import's files lie is the corpus step's execution, never its identity: the store may hold
a corpus that was imported from a folder which has been moved, copied or changed since.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inject.corpus.corpus import Corpus
from inject.corpus.tokenizer import encode_texts
from inject.examples.example import Example
from inject.formats.layout import token_files
from inject.settings import plain
from spikein.pipeline.graph import Step
from spikein.store.artifact import Artifact


def numbered_inputs(groups: Sequence[Mapping[str, Step | None]]) -> dict[str, Step]:
    """Return the inputs of a step that compares many models: a group of steps for each of them.

    Args:
        groups: for each model its steps by name; what is None is left out.

    Returns:
        The steps by numbered names such as `0003-scores`.
    """
    return {
        _numbered(number, name): step
        for number, group in enumerate(groups)
        for name, step in group.items()
        if step is not None
    }


def numbered_folders(inputs: Mapping[str, Artifact], number: int) -> dict[str, Path]:
    """Return the folders of one group of `numbered_inputs`, by the names given there."""
    start = _numbered(number, "")
    return {
        name.removeprefix(start): artifact.path
        for name, artifact in inputs.items()
        if name.startswith(start)
    }


def _numbered(number: int, name: str) -> str:
    return f"{number:04d}-{name}"


def open_corpus(corpus: Step, inputs: Mapping[str, Any]) -> Corpus:
    """Open a step's input `corpus`; files of an import are compared with it, once a process.

    Args:
        corpus: the step that made it.
        inputs: of the step that reads it.

    Raises:
        InputError: as `Corpus.open`.
    """
    given = None if corpus.execution is None else plain(corpus.execution)
    return Corpus.open(inputs["corpus"].path, outside=token_files(given))


def example_tokens(examples: Sequence[Example], tokenizer: Any) -> dict[str, npt.NDArray[np.int64]]:
    """Return the token ids of each example's text, by example_id; no special tokens."""
    encoded = encode_texts(tokenizer, [example.text for example in examples])
    return {example.example_id: ids for example, ids in zip(examples, encoded, strict=True)}
