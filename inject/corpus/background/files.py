"""Background from local files: any format of `inject.reading.rows`, RedPajama's `{text, meta}`
included."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from inject.corpus.background.document import Document, Skipped, row_documents
from inject.reading.rows import files_identity, read_rows
from inject.settings import PositiveFloat, Settings


class FilesSource(Settings):
    """Local files, folders or globs, one document per row."""

    kind: Literal["files"]
    """`files`."""
    path: Annotated[str, Field(min_length=1)]
    """A file, a folder (all known files below it) or a glob with `**`, here or on the hub."""
    field: str | None = None
    """Field with the text; by default its usual names (`text`, `content` …)."""
    weight: PositiveFloat = 1.0
    """Relative share of this source in the bytes of the mixture."""

    finite: ClassVar[bool] = True

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return f"files {self.path}"

    def identity(self) -> dict[str, Any]:
        """Return the inputs that determine the documents: the files' content, not their folder."""
        return {"kind": self.kind, "field": self.field, "files": files_identity(self.path)}

    def documents(self, skipped: Skipped | None = None) -> Iterator[Document]:
        """Yield one document for each row that has text, in the order of files and rows.

        Raises:
            InputError: as `inject.reading.rows.read_rows` and `text_of`, naming file and line.
        """
        yield from row_documents(read_rows(self.path, purpose="background"), self.field, skipped)
