"""Where the documents of an imported stream start: from an index, from rows, or from end tokens.

Starts go straight to `docs.npy`, so that memory does not grow with their number. On the way it is
counted how many documents have no end token behind them.
"""

from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from inject.corpus.imported_layout import I64


class StartsWriter:
    """Writes an `.npy` file of int64 positions bit by bit; a context manager."""

    def __init__(self, path: Path) -> None:
        self.count = 0
        self._file: IO[bytes] = path.open("w+b")
        self._header()

    def __enter__(self) -> "StartsWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.seek(0)
        self._header()
        self._file.close()

    def append(self, starts: I64) -> None:
        """Append positions, shape [n]."""
        self._file.write(np.ascontiguousarray(starts, dtype="<i8").data)
        self.count += len(starts)

    def _header(self) -> None:
        # numpy pads the header so that it keeps its length while the first axis grows.
        header = {"descr": "<i8", "fortran_order": False, "shape": (self.count,)}
        np.lib.format.write_array_header_1_0(self._file, header)


class ByEndToken:
    """Finds where documents start that end with the end token, or with their file.

    Args:
        starts: takes the positions.
        end: the end token.
    """

    def __init__(self, starts: StartsWriter, end: int) -> None:
        self.unended = 0
        """Documents without an end token behind them; the last one of a cut stream is none."""
        self._starts = starts
        self._end = end
        # A start that is not written yet: whether there is a token behind it is not known.
        self._due: int | None = None

    def file_starts(self, position: int) -> None:
        """Take note that a file begins at this position of the stream."""
        self._due = position

    def add(self, ids: npt.NDArray[Any], position: int) -> None:
        """Follow these ids, which stand at this position, behind what was seen before."""
        starts = np.flatnonzero(ids == self._end) + (position + 1)
        if self._due is not None:
            starts = np.append(self._due, starts)
        behind = len(starts) and starts[-1] == position + len(ids)
        self._due = int(starts[-1]) if behind else None
        self._starts.append(starts[:-1] if behind else starts)

    def file_ends(self) -> None:
        """Take note that the file was used to its end."""
        self.unended += self._due is None
        self._due = None


class ByIndex:
    """Follows the stream whose documents start where an index says.

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
        """Follow these ids, which stand at this position, behind what was seen before."""
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


Documents = ByEndToken | ByIndex
"""What follows the stream, block by block, and counts documents without an end token."""
