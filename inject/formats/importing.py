"""Makes a corpus folder (`inject.corpus.build`) of existing token ids without copying them.

Megatron's and OLMo's files stay where they are: the corpus refers to them. They are read once, in
blocks, to hash the used content, to check every id against the vocabulary, and to find the
documents. They are copied only if a corpus cannot read them in place: ids of 1 or 8 bytes,
big-endian ids, files of different widths; rows of datasets always. Where documents start (by an
index, by rows or by end tokens) goes straight to `docs.npy`. Memory does not grow with the corpus.
Cost: reading and hashing, about 0.5 GB/s.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from inject.corpus.corpus import (
    STARTS_FILE,
    TOKENIZER_FOLDER,
    CorpusFacts,
    write_facts,
    write_places,
)
from inject.corpus.imported_layout import I64, Layout, TokenFile
from inject.corpus.tokenizer import AnyTokenizer, end_token_id, vocabulary_size
from inject.corpus.tokens import Shard, TokenWriter
from inject.errors import InputError
from inject.formats.exported_rows import ByIndex
from inject.formats.huggingface import DatasetsImport, IdBatch
from inject.formats.megatron import MegatronImport
from inject.formats.olmo import OlmoImport
from inject.reading.change_guard import content_digest

AnyImport = Annotated[MegatronImport | OlmoImport | DatasetsImport, Field(discriminator="kind")]
"""Any corpus to import, named by `kind`."""

_BLOCK = 1 << 22


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
    """Finds the starts of documents that end with the end token, or with their file.

    Args:
        starts: takes the positions.
        end: the end token.
    """

    def __init__(self, starts: StartsWriter, end: int) -> None:
        self.unended = 0
        """Documents without an end token; the last one of a cut stream does not count."""
        self._starts = starts
        self._end = end
        # A start that is not written yet: whether there is a token behind it is not known.
        self._due: int | None = None

    def file_starts(self, position: int) -> None:
        """Take note that a file begins at this position of the stream."""
        self._due = position

    def add(self, ids: npt.NDArray[Any], position: int) -> None:
        """Add the ids at this position, which follow those seen before."""
        starts = np.flatnonzero(ids == self._end) + (position + 1)
        if self._due is not None:
            starts = np.append(self._due, starts)
        is_last = len(starts) and starts[-1] == position + len(ids)
        self._due = int(starts[-1]) if is_last else None
        self._starts.append(starts[:-1] if is_last else starts)

    def file_ends(self) -> None:
        """Take note that the file was used to its end."""
        self.unended += self._due is None
        self._due = None


Documents = ByEndToken | ByIndex
"""Follows the stream, block by block, and counts documents without an end token."""


class _Job(NamedTuple):
    """The parameters of every import."""

    out: Path
    source: AnyImport
    end: int
    vocabulary: int
    tokens: int | None
    """The length at which the stream is cut; None for all tokens."""

    @property
    def starts(self) -> Path:
        """The file of document starts."""
        return self.out / STARTS_FILE

    def too_short(self, tokens: int) -> InputError:
        """Return the error for a corpus that is shorter than requested."""
        return InputError(
            f"the corpus to import has {tokens:,} tokens, fewer than the {self.tokens:,} requested",
            where=self.source.label(),
            hint="Ask for fewer tokens, or import more files.",
        )

    def facts(
        self, shards: Sequence[Shard], dtype: str, documents: int, **remarks: int
    ) -> CorpusFacts:
        """Return the facts of the tokens written or referred to.

        Args:
            shards: in the order of the stream.
            dtype: element type.
            documents: how many there are.
            remarks: counts for the user.
        """
        return CorpusFacts(
            tokens=sum(shard.tokens for shard in shards),
            documents=documents,
            vocabulary=self.vocabulary,
            dtype=dtype,
            end_token=self.end,
            shards=tuple(shards),
            shares=(),
            mixture=({"imported": self.source.identity(), **remarks},),
        )


def import_corpus(
    out: Path,
    source: AnyImport,
    *,
    tokenizer: AnyTokenizer,
    tokens: int | None = None,
) -> CorpusFacts:
    """Write a corpus folder for token ids that exist.

    Args:
        out: an existing, empty folder.
        source: the corpus to import.
        tokenizer: the one that made the ids; gives the vocabulary and the end token.
        tokens: length of the stream, its first tokens; None for all.

    Returns:
        The facts, as in `corpus.json`; their `mixture` records the content of the import.

    Raises:
        InputError: files are missing, damaged, at odds with each other, or shorter than `tokens`;
            or an id outside the vocabulary (file and position named).
    """
    job = _Job(out, source, end_token_id(tokenizer), vocabulary_size(tokenizer), tokens)
    if isinstance(source, DatasetsImport):
        facts = _import_rows(job, source)
    else:
        facts = _import_files(job, source.layout())
    tokenizer.save_pretrained(out / TOKENIZER_FOLDER)
    write_facts(out, facts)
    return facts


def _import_files(job: _Job, layout: Layout) -> CorpusFacts:
    total = layout.tokens if job.tokens is None else job.tokens
    if total > layout.tokens:
        raise job.too_short(layout.tokens)
    kinds = {file.readable_as for file in layout.files}
    dtype = (kinds.pop() if len(kinds) == 1 else None) or ""
    with nullcontext() if dtype else TokenWriter(job.out, vocabulary=job.vocabulary) as writer:
        if layout.documents is not None:
            with StartsWriter(job.starts) as starts:
                for block in layout.documents():
                    starts.append(block[block < total])
            doc_starts = np.load(job.starts, mmap_mode="r")
            documents: Documents = ByIndex(doc_starts, job.end)
            shards = _read_files(job, layout, total, documents, writer)
        else:
            with StartsWriter(job.starts) as starts:
                documents = ByEndToken(starts, job.end)
                shards = _read_files(job, layout, total, documents, writer)
    if writer is not None:
        shards, dtype = writer.shards, writer.dtype.str
    else:
        write_places(job.out, [file.path for file in layout.files][: len(shards)])
    return job.facts(shards, dtype, starts.count, documents_without_end_token=documents.unended)


def _read_files(
    job: _Job, layout: Layout, total: int, documents: Documents, writer: TokenWriter | None
) -> list[Shard]:
    """Read the first `total` tokens once; return the files as shards at their own paths."""
    position = 0
    shards: list[Shard] = []
    for file in layout.files:
        used = min(file.tokens, total - position)
        if not used:
            break
        documents.file_starts(position)
        state = hashlib.sha256()
        for ids in _blocks(file, used, job.vocabulary):
            state.update(ids.data)
            documents.add(ids, position)
            if writer is not None:
                writer.append(ids)
            position += len(ids)
        if used == file.tokens:
            documents.file_ends()
        shards.append(
            Shard(
                name=f"outside-{len(shards):05d}.bin",
                tokens=used,
                sha256=state.hexdigest(),
                skip_bytes=file.skip_bytes,
                file_sha256=content_digest(file.path),
            )
        )
    return shards


def _blocks(file: TokenFile, used: int, vocabulary: int) -> Iterator[npt.NDArray[Any]]:
    """Yield the first `used` ids of a file, each checked against the vocabulary."""
    with file.path.open("rb") as handle:
        handle.seek(file.skip_bytes)
        for first in range(0, used, _BLOCK):
            count = min(_BLOCK, used - first)
            ids = np.fromfile(handle, dtype=file.dtype, count=count)
            if len(ids) < count:
                raise InputError("became shorter while it was read", where=str(file.path))
            at = _find_outside(ids, vocabulary)
            if at is not None:
                raise _not_in_vocabulary(
                    f"token id {ids[at]:,} at position {first + at:,}", str(file.path), vocabulary
                )
            yield ids


def _import_rows(job: _Job, source: DatasetsImport) -> CorpusFacts:
    empty = added = 0
    with (
        TokenWriter(job.out, vocabulary=job.vocabulary) as writer,
        StartsWriter(job.starts) as starts,
    ):
        by_end = ByEndToken(starts, job.end)
        by_end.file_starts(0)
        for batch in source.batches():
            _check_rows(batch, job.vocabulary, source.label())
            if source.rows == "stream":
                ids = _cut(batch.ids, writer, job.tokens)
                by_end.add(ids, writer.n_tokens)
            else:
                ended, begun, missing = _with_ends(batch, job.end)
                ids = _cut(ended, writer, job.tokens)
                used = begun < len(ids)
                starts.append(begun[used] + writer.n_tokens)
                added += int(np.count_nonzero(missing[used]))
            empty += int(np.count_nonzero(np.diff(batch.edges) == 0))
            writer.append(ids)
            if writer.n_tokens == job.tokens:
                break
    if not writer.n_tokens or (job.tokens or 0) > writer.n_tokens:
        if job.tokens:
            raise job.too_short(writer.n_tokens)
        raise InputError("there are no tokens in it", where=source.label())
    return job.facts(
        writer.shards,
        writer.dtype.str,
        starts.count,
        empty_rows=empty,
        end_tokens_added=added,
    )


def _with_ends(batch: IdBatch, end: int) -> tuple[I64, I64, npt.NDArray[np.bool_]]:
    """Return ids with an end token after each row, the rows' starts, and which rows lacked one."""
    nonempty = np.diff(batch.edges) > 0
    stops = batch.edges[1:][nonempty]
    missing = batch.ids[stops - 1] != end
    starts = batch.edges[:-1][nonempty] + np.cumsum(missing) - missing
    return np.insert(batch.ids, stops[missing], end), starts, missing


def _cut(ids: I64, writer: TokenWriter, tokens: int | None) -> I64:
    return ids if tokens is None else ids[: tokens - writer.n_tokens]


def _check_rows(batch: IdBatch, vocabulary: int, place: str) -> None:
    at = _find_outside(batch.ids, vocabulary)
    if at is not None:
        row = int(np.searchsorted(batch.edges, at, side="right")) - 1
        raise _not_in_vocabulary(
            f"token id {batch.ids[at]:,} at position {at - batch.edges[row]:,}",
            f"{place}: row {batch.first + row:,}",
            vocabulary,
        )


def _find_outside(ids: npt.NDArray[Any], vocabulary: int) -> int | None:
    """Return the first position of an id outside the vocabulary, or None."""
    if not len(ids) or (int(ids.max()) < vocabulary and int(ids.min()) >= 0):
        return None
    return int(np.flatnonzero((ids < 0) | (ids >= vocabulary))[0])


def _not_in_vocabulary(problem: str, place: str, vocabulary: int) -> InputError:
    return InputError(
        problem,
        where=place,
        allowed=f"0 to {vocabulary - 1:,}, the vocabulary of the tokenizer",
        hint="The ids were made with another tokenizer, or are of another width.",
    )
