"""Where clean text comes from: sources by `kind`, and their weighted mixture.

A source is a frozen settings object with `documents()`, `identity()` (its content, neither its
path nor its weight) and `label()`. `finite` ones are put in keyed order by the mixture, the
others keep their own.
"""

from inject.corpus.background.docstrings import DocstringsSource
from inject.corpus.background.document import Document, Skipped
from inject.corpus.background.files import FilesSource
from inject.corpus.background.hub import HubSource
from inject.corpus.background.registry import AnySource, source_code, source_identity, source_kind
from inject.corpus.background.source import Source

__all__ = [
    "AnySource",
    "DocstringsSource",
    "Document",
    "FilesSource",
    "HubSource",
    "Skipped",
    "Source",
    "source_code",
    "source_identity",
    "source_kind",
]
