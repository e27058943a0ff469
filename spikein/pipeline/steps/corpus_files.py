"""How steps open the corpus: its folder, and the files of an import where they lie now.

Where an import's files lie is the corpus step's execution, never its identity: the store may hold
a corpus that was imported from a folder which has been moved, copied or changed since.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inject.corpus.build import Corpus
from inject.formats.importing import token_files
from spikein.pipeline.graph import Step


def open_corpus(corpus: Step, inputs: Mapping[str, Any]) -> Corpus:
    """Open a step's input `corpus`; files of an import are compared with it, once a process.

    Args:
        corpus: the step that made it.
        inputs: of the step that reads it.

    Raises:
        InputError: as `Corpus.open`.
    """
    return Corpus.open(inputs["corpus"].path, outside=token_files(corpus.execution))


@contextmanager
def reading_corpus(corpus: Step, inputs: Mapping[str, Any]) -> Iterator[list[str]]:
    """Check the corpus before and after somebody reads it who does not check it.

    Yields:
        Where its shards lie.

    Raises:
        InputError: as `Corpus.open`, before anything is read or after all is.
    """
    opened = open_corpus(corpus, inputs)
    yield [str(file) for file in opened.files]
    Corpus.open(Path(opened.path), outside=opened.files)
