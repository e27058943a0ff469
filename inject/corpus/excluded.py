"""Stretches of token files that are no part of a corpus: the files stay, the reader skips them.

`excluded.npy` in a corpus folder holds them: int64, shape [n, 2], first and one past the last token
in the files' own numbering, ascending, not touching. The corpus counts what is left: its length,
its document starts and every position elsewhere know nothing of what was left out. Reading costs
one more binary search; the table is 16 bytes a stretch.
"""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from inject.errors import InputError

I64 = npt.NDArray[np.int64]

_FILE = "excluded.npy"


class Reader(Protocol):
    """Random access to tokens."""

    n_tokens: int

    def read(self, start: int, stop: int) -> I64:
        """Return the tokens start <= position < stop."""
        ...


class Exclusions:
    """Which stretches are left out, and where everything else comes to stand.

    Args:
        stretches: first and one past the last token of each, ascending; those that touch are
            taken for one.
    """

    def __init__(self, stretches: Sequence[tuple[int, int]]) -> None:
        joined: list[list[int]] = []
        for start, stop in stretches:
            if joined and start == joined[-1][1]:
                joined[-1][1] = stop
            else:
                joined.append([start, stop])
        self.stretches: I64 = np.array(joined, dtype=np.int64).reshape(-1, 2)
        self.tokens = int((self.stretches[:, 1] - self.stretches[:, 0]).sum())
        """How many tokens they hold."""

    def contains(self, positions: I64) -> npt.NDArray[np.bool_]:
        """Return which positions of the files are left out."""
        at = np.searchsorted(self.stretches[:, 0], positions, side="right") - 1
        if not len(self.stretches):
            return np.zeros(len(positions), dtype=bool)
        return (at >= 0) & (positions < self.stretches[np.maximum(at, 0), 1])

    def moved(self, positions: I64) -> I64:
        """Return where positions of the files that stay come to stand."""
        lengths = self.stretches[:, 1] - self.stretches[:, 0]
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        return positions - before[np.searchsorted(self.stretches[:, 0], positions)]

    def place_of(self, kept: int) -> int:
        """Return how many tokens of the files hold `kept` tokens that stay, and no more."""
        first = np.concatenate([np.zeros(1, dtype=np.int64), self.stretches[:, 1]])
        before = self.moved(first)
        piece = int(np.searchsorted(before, kept)) - 1
        return int(first[piece] + kept - before[piece])

    def starts_of_the_rest(self, starts: I64, total: int) -> I64:
        """Return where documents start in what is left.

        A document of which a stretch was left out goes on as one of its own behind it.

        Args:
            starts: document starts in the files, ascending.
            total: tokens in the files.
        """
        ends = self.stretches[:, 1]
        every = np.union1d(starts, ends[ends < total])
        return self.moved(every[~self.contains(every)])


class SkippingReader:
    """The tokens of another reader without the stretches that are left out.

    Args:
        reader: of the files.
        excluded: what is left out.
    """

    def __init__(self, reader: Reader, excluded: Exclusions) -> None:
        self._reader = reader
        stops = excluded.stretches[:, 1]
        first = np.concatenate([np.zeros(1, dtype=np.int64), stops])
        # Pieces that stay, by where they start in the files and in what is left.
        self._first = first.tolist()
        self._starts = excluded.moved(first).tolist()
        self.n_tokens = reader.n_tokens - excluded.tokens
        if excluded.tokens and int(stops[-1]) > reader.n_tokens:
            raise ValueError("a stretch to leave out lies behind the last token")

    def read(self, start: int, stop: int) -> I64:
        """Return a copy of tokens `start` (included) to `stop` (excluded), shape [stop - start].

        Raises:
            IndexError: unless 0 <= start <= stop <= n_tokens.
        """
        if not 0 <= start <= stop <= self.n_tokens:
            raise IndexError(f"tokens {start} to {stop} of {self.n_tokens}")
        piece = bisect_right(self._starts, start) - 1
        if piece + 1 == len(self._starts) or stop <= self._starts[piece + 1]:
            shift = self._first[piece] - self._starts[piece]
            return self._reader.read(start + shift, stop + shift)
        out = np.empty(stop - start, dtype=np.int64)
        at = start
        while at < stop:
            last = piece + 1 == len(self._starts)
            end = stop if last else min(stop, self._starts[piece + 1])
            shift = self._first[piece] - self._starts[piece]
            out[at - start : end - start] = self._reader.read(at + shift, end + shift)
            at, piece = end, piece + 1
        return out


def write_excluded(folder: Path, excluded: Exclusions) -> None:
    """Write the table into a corpus folder."""
    np.save(folder / _FILE, excluded.stretches)


def read_excluded(folder: Path) -> Exclusions | None:
    """Read the table of a corpus folder; None where nothing is left out.

    Raises:
        InputError: it is damaged.
    """
    path = folder / _FILE
    if not path.is_file():
        return None
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path)) from error
    whole = found.dtype == np.int64 and found.ndim == 2 and found.shape[1:] == (2,)
    flat = found.reshape(-1) if whole else np.zeros(0)
    if not whole or (flat < 0).any() or (np.diff(flat) <= 0).any():
        raise InputError("not a list of stretches that ascend", where=str(path))
    return Exclusions([(int(start), int(stop)) for start, stop in found])
