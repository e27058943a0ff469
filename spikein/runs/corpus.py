"""The corpus of a finished run, opened by commands that have the run's folder alone.

Files of an import are looked for where the run's experiment says they are, then where they lay
when they were imported; in both places their content decides.
"""

from pathlib import Path

from inject.corpus.build import Corpus
from inject.errors import SpikeinError
from inject.formats.importing import token_files
from spikein.config.load import read_experiment


def open_run_corpus(folder: Path, corpus: Path) -> Corpus:
    """Open a corpus that a run was made from.

    Args:
        folder: the run's.
        corpus: the corpus's.

    Raises:
        InputError: as `Corpus.open`.
    """
    try:
        outside = token_files(read_experiment(folder / "experiment.yaml").corpus.imported)
        return Corpus.open(corpus, outside=outside)
    except SpikeinError:
        return Corpus.open(corpus)
