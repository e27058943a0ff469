"""Stretches of token files that are no part of a corpus: the files stay, the reader skips them.

`excluded.npy` in a corpus folder holds them: int64, shape [n, 2], first and one past the last token
in the files' own numbering, ascending, not touching. The corpus counts what is left: its length,
its document starts and every position elsewhere know nothing of what was left out. The reader sees
one array more a stretch (`rest_of`), some 100 bytes.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inject.errors import InputError

I64 = npt.NDArray[np.int64]

_FILE = "excluded.npy"


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

    def rest_of(
        self, shards: Sequence[npt.NDArray[np.unsignedinteger]]
    ) -> list[npt.NDArray[np.unsignedinteger]]:
        """Return what stays of consecutive arrays of tokens, as views of them."""
        starts = [0, *accumulate(map(len, shards))]
        edges = np.union1d(starts, self.stretches)
        stays = ~self.contains(edges[:-1])
        rest = []
        for start, stop in zip(edges[:-1][stays].tolist(), edges[1:][stays].tolist(), strict=True):
            shard = bisect_right(starts, start) - 1
            rest.append(shards[shard][start - starts[shard] : stop - starts[shard]])
        return rest


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
        stretches = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path)) from error
    if stretches.dtype != np.int64 or stretches.shape[1:] != (2,):
        raise InputError("is not a list of stretches", where=str(path))
    return Exclusions(stretches.tolist())
