"""How steps open their inputs: numbered ones, and the corpus.

Where an import's files lie is the corpus step's execution, never its identity: the store may hold
a corpus that was imported from a folder which has been moved, copied or changed since.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from inject.corpus.corpus import Corpus
from inject.formats.importing import AnyImport, token_files
from inject.step import Reading
from spikein.pipeline.graph import Step
from spikein.store.artifact import Artifact

_IMPORT: TypeAdapter[AnyImport] = TypeAdapter(AnyImport)


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


def numbered_reads(inputs: Mapping[str, Step], name: str, reading: Reading) -> dict[str, Reading]:
    """Return, for the inputs of one name in all groups, what a step reads of them."""
    return {full: reading for full in inputs if full.partition("-")[2] == name}


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
    given = corpus.execution["imported"]
    source = None if given is None else _IMPORT.validate_python(given)
    return Corpus.open(inputs["corpus"].path, outside=token_files(source))


@contextmanager
def reading_corpus(corpus: Step, inputs: Mapping[str, Any]) -> Iterator[list[str]]:
    """Check the corpus before and after it is read by code that does not check it.

    Yields:
        Where its shards lie.

    Raises:
        InputError: as `Corpus.open`, before anything is read or after all is.
    """
    opened = open_corpus(corpus, inputs)
    yield [str(file) for file in opened.files]
    Corpus.open(Path(opened.path), outside=opened.files)
