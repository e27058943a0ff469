"""Token files: shards `tokens-00000.bin` … of little-endian u16, or u32 for large vocabularies.

Written once and appended to only; read through memory maps. A shard has no header: its length
is in its facts, and a file of another size is rejected. Reading costs one copy
(about 1 GB/s); the cost of opening does not depend on the size.

A corpus can exclude spans of them (`Exclusions`): the files stay, the reader skips the spans.
`excluded.npy` in a corpus folder lists them: int64, shape [n, 2], first and one past the last token
in the files' own numbering, ascending, not touching. The corpus counts only the remaining tokens:
its length, its document starts and all positions elsewhere ignore the excluded ones. The reader
sees one more array per span (`rest_of`), some 100 bytes.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from inject.errors import InputError, reading
from inject.keyed import I64

SHARD_BYTES = 512 << 20
_EXCLUDED_FILE = "excluded.npy"
_BLOCK = 1 << 22
_U16_VOCABULARY = 1 << 16


@dataclass(frozen=True)
class Shard:
    """One file of tokens."""

    name: str
    tokens: int
    sha256: str
    """Of these tokens' bytes."""
    skip_bytes: int = 0
    """Bytes before its first token."""
    file_sha256: str = ""
    """Digest of the whole file, if it is outside the corpus folder."""

    @property
    def outside(self) -> bool:
        """Whether the file is external: not ours, and read at its own path."""
        return bool(self.file_sha256)


def token_dtype(vocabulary: int) -> str:
    """Return numpy's name of the element type: `<u2` if the vocabulary fits, else `<u4`."""
    return "<u2" if vocabulary <= _U16_VOCABULARY else "<u4"


class TokenWriter:
    """Appends tokens to shards in a folder; a context manager; on exit, `shards` is complete.

    Args:
        folder: receives the shards; it exists.
        vocabulary: ids are 0 <= id < vocabulary.
        shard_bytes: size at which the next shard begins.
    """

    def __init__(self, folder: Path, *, vocabulary: int, shard_bytes: int = SHARD_BYTES) -> None:
        self.folder = folder
        self.dtype = np.dtype(token_dtype(vocabulary))
        self.shards: list[Shard] = []
        self.n_tokens = 0
        self._room = max(1, shard_bytes // self.dtype.itemsize)
        self._file: IO[bytes] | None = None
        self._hash = hashlib.sha256()
        self._in_shard = 0

    def __enter__(self) -> "TokenWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._finish_shard()

    def append(self, ids: npt.NDArray[np.integer]) -> None:
        """Append ids, shape [n], each of the vocabulary."""
        start = 0
        while start < len(ids):
            part = ids[start : start + self._room - self._in_shard]
            self._write(part.astype(self.dtype).tobytes(), len(part))
            start += len(part)

    def _write(self, data: bytes, tokens: int) -> None:
        if self._file is None:
            self._file = (self.folder / self._name()).open("wb")
        self._file.write(data)
        self._hash.update(data)
        self._in_shard += tokens
        self.n_tokens += tokens
        if self._in_shard == self._room:
            self._finish_shard()

    def _name(self) -> str:
        return f"tokens-{len(self.shards):05d}.bin"

    def _finish_shard(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self.shards.append(Shard(self._name(), self._in_shard, self._hash.hexdigest()))
        self._file, self._hash, self._in_shard = None, hashlib.sha256(), 0


class Exclusions:
    """Which spans are left out, and the new positions of all other tokens.

    Args:
        stretches: first and one past the last token of each span, ascending; those that touch are
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
        """Number of tokens in them."""

    def contains(self, positions: I64) -> npt.NDArray[np.bool_]:
        """Return whether each position of the files is left out."""
        at = np.searchsorted(self.stretches[:, 0], positions, side="right") - 1
        if not len(self.stretches):
            return np.zeros(len(positions), dtype=bool)
        return (at >= 0) & (positions < self.stretches[np.maximum(at, 0), 1])

    def moved(self, positions: I64) -> I64:
        """Return the new positions of tokens that stay, given their positions in the files."""
        lengths = self.stretches[:, 1] - self.stretches[:, 0]
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        return positions - before[np.searchsorted(self.stretches[:, 0], positions)]

    def place_of(self, n_kept: int) -> int:
        """Return the number of file tokens that contain exactly `n_kept` tokens that stay."""
        first = np.concatenate([np.zeros(1, dtype=np.int64), self.stretches[:, 1]])
        before = self.moved(first)
        piece = int(np.searchsorted(before, n_kept)) - 1
        return int(first[piece] + n_kept - before[piece])

    def starts_of_the_rest(self, starts: I64, total: int) -> I64:
        """Return the document starts in the remaining tokens.

        If a span is left out of a document, the part after it is a separate document.

        Args:
            starts: document starts in the files, ascending.
            total: tokens in the files.
        """
        ends = self.stretches[:, 1]
        all_starts = np.union1d(starts, ends[ends < total])
        return self.moved(all_starts[~self.contains(all_starts)])

    def rest_of(
        self, shards: Sequence[npt.NDArray[np.unsignedinteger]]
    ) -> list[npt.NDArray[np.unsignedinteger]]:
        """Return the tokens that stay of consecutive arrays, as views of them."""
        starts = [0, *accumulate(map(len, shards))]
        edges = np.union1d(starts, self.stretches)
        stays = ~self.contains(edges[:-1])
        views = []
        for start, stop in zip(edges[:-1][stays].tolist(), edges[1:][stays].tolist(), strict=True):
            shard = bisect_right(starts, start) - 1
            views.append(shards[shard][start - starts[shard] : stop - starts[shard]])
        return views


class TokenReader:
    """Random access to the tokens of all shards, in the order of the stream.

    Args:
        paths: of the shards.
        shards: in the order of the stream.
        dtype: element type.
        excluded: spans that are skipped; None for none.

    Raises:
        InputError: a missing shard, or one of another size than in `shards`.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        shards: Sequence[Shard],
        *,
        dtype: str,
        excluded: Exclusions | None = None,
    ) -> None:
        self._maps = [
            _map(path, shard, np.dtype(dtype)) for path, shard in zip(paths, shards, strict=True)
        ]
        if excluded is not None:
            self._maps = excluded.rest_of(self._maps)
        self._starts = [0, *accumulate(map(len, self._maps))]
        self.n_tokens = self._starts[-1]

    def read(self, start: int, stop: int) -> I64:
        """Return a copy of tokens `start` (included) to `stop` (excluded), shape [stop - start].

        Raises:
            IndexError: unless 0 <= start <= stop <= n_tokens.
        """
        if not 0 <= start <= stop <= self.n_tokens:
            raise IndexError(f"tokens {start} to {stop} of {self.n_tokens}")
        out = np.empty(stop - start, dtype=np.int64)
        at = start
        while at < stop:
            shard = bisect_right(self._starts, at) - 1
            end = min(stop, self._starts[shard + 1])
            base = self._starts[shard]
            out[at - start : end - start] = self._maps[shard][at - base : end - base]
            at = end
        return out


def check_shard(path: Path, shard: Shard, *, dtype: str) -> None:
    """Hash the tokens of a shard, whose ids were looked at when it was written.

    Raises:
        InputError: content that changed since.
    """
    tokens = _map(path, shard, np.dtype(dtype))
    state = hashlib.sha256()
    for start in range(0, len(tokens), _BLOCK):
        state.update(np.ascontiguousarray(tokens[start : start + _BLOCK]).data)
    if state.hexdigest() != shard.sha256:
        raise InputError(
            "the tokens differ from those written: the file has been changed since",
            where=str(path),
            hint="Delete this corpus and run again.",
        )


def _map(path: Path, shard: Shard, element: np.dtype) -> npt.NDArray[np.unsignedinteger]:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"token file cannot be read: {error.strerror}", where=str(path)) from error
    needed = shard.skip_bytes + shard.tokens * element.itemsize
    # An external file may have more content than the corpus uses.
    if size < needed or (size > needed and not shard.outside):
        raise InputError(
            f"token file has {size} bytes, not {needed}: it is truncated or damaged",
            where=str(path),
            hint="Restore the file, or import it again."
            if shard.outside
            else "Delete this corpus and run again.",
        )
    mapped = np.memmap(
        path, dtype=element, mode="r", offset=shard.skip_bytes, shape=(shard.tokens,)
    )
    # Slices of a plain array cost a fraction of those of a memmap.
    return np.asarray(mapped)


def write_excluded(folder: Path, excluded: Exclusions) -> None:
    """Write the table into a corpus folder."""
    np.save(folder / _EXCLUDED_FILE, excluded.stretches)


def read_excluded(folder: Path) -> Exclusions | None:
    """Read the table of a corpus folder; None if nothing is left out.

    Raises:
        InputError: a damaged file.
    """
    path = folder / _EXCLUDED_FILE
    if not path.is_file():
        return None
    with reading(path):
        stretches = np.load(path, allow_pickle=False)
    if stretches.dtype != np.int64 or stretches.shape[1:] != (2,):
        raise InputError("is not a list of spans", where=str(path))
    return Exclusions(stretches.tolist())
