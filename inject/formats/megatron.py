"""Megatron-LM's indexed dataset: `PREFIX.bin` has the tokens, `PREFIX.idx` their layout.

The index, all little-endian: the magic `MMIDIDX` and two zero bytes; u64 version 1; u8 code of the
element type; u64 number S of sequences; u64 number D of document indices (documents + 1); S × i32
lengths in tokens; S × i64 byte offsets into the `.bin`; D × i64 sequence indices at which documents
start, from 0, the last one S. A multimodal index continues with S × i8 modes, and is rejected.
Source: Megatron-LM, `megatron/core/datasets/indexed_dataset.py`.

The index is mapped and checked in blocks, so neither reading nor writing loads it into memory.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from inject.corpus.imported_layout import I64, Layout, TokenFile, bin_of, megatron_indices, size_of
from inject.errors import InputError
from inject.formats.exported_rows import ExportedRows
from inject.reading.rows import content_digest
from inject.settings import Settings

MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_HEADER = struct.Struct("<9sQBQQ")
_DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
"""Codes of integers; 6 and 7 are floats, which cannot be token ids."""
_LONGEST = 2**31 - 1
_BLOCK = 1 << 20


class MegatronImport(Settings):
    """Token files of Megatron-LM, used in place."""

    kind: Literal["megatron"]
    """`megatron`."""
    path: Annotated[str, Field(min_length=1)]
    """Prefix of a `.bin` and an `.idx` file, a folder of such pairs, or a glob such as
    `DIR/*.idx`; several are read in sorted order."""

    def label(self) -> str:
        """Return a short name for messages and reports."""
        return f"megatron {self.path}"

    def identity(self) -> dict[str, Any]:
        """Return the inputs that determine the tokens: the files' content, not their names."""
        return {
            "kind": self.kind,
            "files": [
                {"idx": content_digest(path), "bin": content_digest(bin_of(path))}
                for path in megatron_indices(self.path)
            ],
        }

    def layout(self) -> Layout:
        """Return the token files, the index of each checked against its `.bin`.

        Raises:
            InputError: files are missing, truncated, or do not fit each other.
        """
        indices = [MegatronIndex.open(path) for path in megatron_indices(self.path)]
        return Layout(
            files=tuple(index.token_file() for index in indices),
            documents=partial(_documents, indices),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MegatronIndex:
    """An `.idx` file, checked in itself; its arrays are memory maps."""

    path: Path
    dtype: np.dtype
    lengths: npt.NDArray[np.int32]
    """Tokens of each sequence."""
    offsets: I64
    """Bytes before each sequence."""
    documents: I64
    """Sequence at which each document starts, and one past the last sequence."""
    tokens: int

    @classmethod
    def open(cls, path: Path) -> "MegatronIndex":
        """Open and check an index; the `.bin` is not touched.

        Raises:
            InputError: not such an index, truncated, multimodal, or at odds with itself.
        """
        size = size_of(path)
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
        if head[: len(MAGIC)] != MAGIC:
            raise InputError(
                f"not an index of Megatron-LM: it begins with {head[:9]!r}",
                where=str(path),
                allowed=f"files that begin with {MAGIC!r}",
            )
        if len(head) < _HEADER.size:
            raise InputError("the index is truncated within its header", where=str(path))
        _, version, code, sequences, entries = _HEADER.unpack(head)
        dtype = _checked_header(path, version, code, sequences, entries)
        whole = _HEADER.size + 12 * sequences + 8 * entries
        if size == whole + sequences:
            raise InputError(
                "a multimodal index (one with a mode for each sequence) is not supported",
                where=str(path),
                hint="Export only the text.",
            )
        if size != whole:
            raise InputError(
                f"the index has {size:,} bytes; {sequences:,} sequences and {entries:,} document "
                f"indices take {whole:,}: it is truncated or damaged",
                where=str(path),
            )
        at = _HEADER.size
        lengths = np.memmap(path, "<i4", "r", at, (sequences,))
        offsets = np.memmap(path, "<i8", "r", at + 4 * sequences, (sequences,))
        documents = np.memmap(path, "<i8", "r", at + 12 * sequences, (entries,))
        _check_documents(path, documents, sequences)
        tokens = _check_offsets(path, lengths, offsets, dtype.itemsize)
        return cls(
            path=path,
            dtype=dtype,
            lengths=lengths,
            offsets=offsets,
            documents=documents,
            tokens=tokens,
        )

    def token_file(self) -> TokenFile:
        """Return the `.bin`, checked to exist with the length in the index.

        Raises:
            InputError: if it does not.
        """
        path, width = bin_of(self.path), self.dtype.itemsize
        size = size_of(path)
        if size != self.tokens * width:
            raise InputError(
                f"has {size:,} bytes, but its index lists {self.tokens:,} tokens of {width} bytes, "
                f"which are {self.tokens * width:,}: the two do not belong together, or one is "
                "truncated",
                where=str(path),
            )
        return TokenFile(path=path, tokens=self.tokens, dtype=self.dtype)

    def document_starts(self) -> Iterator[I64]:
        """Yield the positions at which documents start, in blocks; empty ones have none."""
        width, last = self.dtype.itemsize, len(self.lengths)
        for start in range(0, len(self.documents) - 1, _BLOCK):
            # One entry more, to see which documents of the block are empty.
            entries = np.asarray(self.documents[start : start + _BLOCK + 1])
            inside = entries < last
            starts = np.full(len(entries), self.tokens, dtype=np.int64)
            starts[inside] = self.offsets[entries[inside]] // width
            yield starts[:-1][starts[:-1] < starts[1:]]


def write_index(path: Path, rows: ExportedRows, dtype: np.dtype) -> None:
    """Write the index of a `.bin` in which each row is one sequence and one document.

    Args:
        path: the target.
        rows: the rows of the stream.
        dtype: element type of the `.bin`: `<u2` or `<i4`.

    Raises:
        InputError: a row that is too long for the index.
    """
    code = next(code for code, name in _DTYPES.items() if np.dtype(name) == dtype)
    with path.open("wb") as file:
        file.write(_HEADER.pack(MAGIC, _VERSION, code, rows.count, rows.count + 1))
        for edges in rows.edges(_BLOCK):
            lengths = np.diff(edges)
            if lengths.max() > _LONGEST:
                raise InputError(
                    f"a document of {lengths.max():,} tokens is too long for Megatron-LM's index",
                    allowed=f"at most {_LONGEST:,} tokens",
                    hint="Export windows instead of documents.",
                )
            file.write(lengths.astype("<i4").tobytes())
        for edges in rows.edges(_BLOCK):
            file.write((edges[:-1] * dtype.itemsize).astype("<i8").tobytes())
        for start in range(0, rows.count + 1, _BLOCK):
            file.write(np.arange(start, min(start + _BLOCK, rows.count + 1), dtype="<i8").tobytes())


def _documents(indices: list[MegatronIndex]) -> Iterator[I64]:
    before = 0
    for index in indices:
        for starts in index.document_starts():
            yield starts + before
        before += index.tokens


def _checked_header(path: Path, version: int, code: int, sequences: int, entries: int) -> np.dtype:
    place = str(path)
    if version != _VERSION:
        raise InputError(f"version {version} of the index", where=place, allowed=f"{_VERSION}")
    if code not in _DTYPES:
        codes = ", ".join(f"{code} ({np.dtype(name)})" for code, name in _DTYPES.items())
        raise InputError(
            f"code {code} of the element type is not one of token ids", where=place, allowed=codes
        )
    if not sequences or not entries:
        raise InputError(
            f"the index is empty: {sequences} sequences, {entries} document indices", where=place
        )
    return np.dtype(_DTYPES[code])


def _check_documents(path: Path, documents: I64, sequences: int) -> None:
    descend = any(
        (np.diff(documents[start : start + _BLOCK + 1]) < 0).any()
        for start in range(0, len(documents), _BLOCK)
    )
    if descend or documents[0] != 0 or documents[-1] != sequences:
        raise InputError(
            "its document indices are damaged",
            where=str(path),
            allowed=f"indices that ascend from 0 to the number of sequences, {sequences:,}",
        )


def _check_offsets(path: Path, lengths: npt.NDArray[np.int32], offsets: I64, width: int) -> int:
    """Return the number of tokens; every sequence begins at the end of the previous one."""
    tokens = 0
    for start in range(0, len(lengths), _BLOCK):
        block = lengths[start : start + _BLOCK].astype(np.int64)
        ends = tokens + np.cumsum(block)
        wrong = np.flatnonzero(offsets[start : start + _BLOCK] != (ends - block) * width)
        if len(wrong):
            at = int(wrong[0])
            raise InputError(
                f"the index puts sequence {start + at:,} at byte {offsets[start + at]:,}; the "
                f"lengths before it add up to {(ends[at] - block[at]) * width:,}",
                where=str(path),
                hint="The index was edited without its offsets, or is damaged.",
            )
        tokens = int(ends[-1])
    return tokens
