"""A spaCy pipeline without a model, in a folder: it finds what its patterns name."""

from pathlib import Path

import pytest

NO_SPACY = "NOT TESTED: spaCy is not installed (pip install 'spikein[tagger]')"


def write_tagger(folder: Path, **patterns: str) -> Path:
    """Write a pipeline that labels all occurrences of some texts; skip without spaCy."""
    spacy = pytest.importorskip("spacy", reason=NO_SPACY)
    tagger = spacy.blank("en")
    tagger.meta.update(name="patterns", version="1.2.0")
    ruler = tagger.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": label, "pattern": text} for label, text in patterns.items()])
    tagger.to_disk(folder)
    return folder
