"""The rows of an exported stream: its documents, or its windows.

A row is a span of the stream. Windows are counted, not listed, so that their memory does not depend
on the stream's length; documents cost their starts, 8 bytes each. Tokens are read in blocks.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from inject.keyed import I64
from inject.stream.view import StreamView

RowKind = Literal["documents", "windows"]
BLOCK = 1 << 20
"""Tokens that are read at once."""
_ROWS = 1 << 16


class ByIndex:
    """Follows a stream whose document starts are in an index.

    Args:
        starts: all of them, ascending; may be a memory map.
        end: the end token.
    """

    def __init__(self, starts: I64, end: int) -> None:
        self.unended = 0
        self._starts = starts
        self._end = end
        self._last: int | None = None

    def file_starts(self, position: int) -> None:
        """Do nothing: the index knows."""

    def add(self, ids: npt.NDArray[Any], position: int) -> None:
        """Add the ids at this position, which follow those seen before."""
        # The token before a start ends a document; that of the last one is seen by `file_ends`.
        first, last = np.searchsorted(self._starts, [position, position + len(ids)])
        before = self._starts[first:last] - 1 - position
        inside = before[before >= 0]
        self.unended += int(np.count_nonzero(ids[inside] != self._end))
        if len(inside) < len(before) and self._last is not None:
            self.unended += self._last != self._end
        self._last = int(ids[-1])

    def file_ends(self) -> None:
        """Take note that the file was used to its end."""
        self.unended += self._last != self._end
        self._last = None


class ExportedRows:
    """Documents or whole windows of a view, one after the other from position 0; read once.

    Args:
        view: the stream.
        kind: `windows` leaves out a last partial window.
        end: the end token, by which documents without one are counted.
        progress: called with the number of tokens so far.
    """

    def __init__(
        self,
        view: StreamView,
        kind: RowKind,
        *,
        end: int,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.starts = view.document_starts()
        """The ascending positions at which documents start, the first 0."""
        self._view = view
        self._windows = kind == "windows"
        self._documents = ByIndex(self.starts, end)
        self._progress = progress or (lambda done: None)
        # A last partial window is never trained on, and is not exported either.
        self.count = view.n_tokens // view.context if self._windows else len(self.starts)
        self.n_tokens = self.count * view.context if self._windows else view.n_tokens

    def unended(self) -> int:
        """Return the number of documents read that have no end token; called once."""
        self._documents.file_ends()
        return self._documents.unended

    def edges(self, size: int) -> Iterator[I64]:
        """Yield the starts of rows and the end of the last of them, `size` rows at a time."""
        for first in range(0, self.count, size):
            last = min(first + size, self.count)
            if self._windows:
                yield np.arange(first, last + 1, dtype=np.int64) * self._view.context
                continue
            edges = np.asarray(self.starts[first : last + 1], dtype=np.int64)
            yield np.append(edges, self.n_tokens) if last == self.count else edges

    def batches(self, tokens: int) -> Iterator[tuple[I64, I64]]:
        """Yield (edges, ids) of consecutive rows: about `tokens` tokens, at least one row."""
        for edges in self.edges(_ROWS):
            first = 0
            while first < len(edges) - 1:
                last = int(np.searchsorted(edges, edges[first] + tokens, side="right")) - 1
                last = max(last, first + 1)
                yield edges[first : last + 1], self._read(int(edges[first]), int(edges[last]))
                first = last

    def blocks(self) -> Iterator[I64]:
        """Yield the tokens of all rows in blocks."""
        for start in range(0, self.n_tokens, BLOCK):
            yield self._read(start, min(start + BLOCK, self.n_tokens))

    def _read(self, start: int, stop: int) -> I64:
        """Return tokens; only ever called with the stop of the call before as start."""
        ids = self._view.read(start, stop)
        self._documents.add(ids, start)
        self._progress(stop)
        return ids
