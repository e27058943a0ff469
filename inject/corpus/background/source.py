"""What a source of the background is: settings that can yield documents.

The user writes a source as a mapping under `corpus.sources`; `kind` says which class reads it. A
source of one's own is a subclass of `Source` in a file (`kind: FILE.py:NAME`) or an entry point of
the group `spikein.sources`. Its fields are its options, validated as those of any other source.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from inject.corpus.background.document import Document, Skipped
from inject.settings import PositiveFloat, Settings


class Source(Settings, ABC):
    """A source of documents for the background."""

    kind: Annotated[str, Field(min_length=1)]
    """Which source it is: its name, or `FILE.py:NAME`."""
    weight: PositiveFloat = 1.0
    """Share of this source in the bytes of the mixture, relative to the other weights."""

    finite: ClassVar[bool] = True
    """True: the source is read whole (at most 2 GiB) and put in keyed order; False: it may be
    without end, and keeps its own order."""

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return self.kind

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return what decides the documents, as plain JSON values.

        The content of files counts, by its digest (`inject.reading.rows.files_identity`), never
        their folder. The source's code is added to it by whoever asks.
        """

    @abstractmethod
    def documents(self, skipped: Skipped | None = None) -> Iterator[Document]:
        """Yield the documents in a fixed order, none of them empty.

        Args:
            skipped: counts what is left out, where it is given.
        """
