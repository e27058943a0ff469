"""Tokenising one chunk of documents into files of its own, in this process or in another.

A chunk is a stretch of documents in the order of the stream. Its tokens and the length of each of
its documents lie in a sealed folder (`inject.sealed`), which names the digest of the texts it was
made from: a later build uses it again only for the same texts and the same tokenizer, and only
where it is still what was written.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inject.corpus.tokens import token_dtype
from inject.helper_processes import die_with_parent
from inject.sealed import seal, whole

_BATCH_BYTES = 1 << 20


class Chunk(NamedTuple):
    """What a chunk is made from."""

    number: int
    """Its place in the stream, from 0."""
    texts: tuple[str, ...]
    digest: str
    """Of texts and tokenizer."""


@dataclass(frozen=True, kw_only=True)
class ChunkFacts:
    """A finished chunk."""

    number: int
    digest: str
    documents: int
    """Documents with at least one token."""
    tokens: int
    """End tokens included."""
    sha256: str
    """Of the token file."""
    end_token_document: int | None
    """The first document whose text holds the end token; the chunk is then of no use."""


class ChunkFiles:
    """The chunks in a folder, a folder each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def tokens(self, number: int) -> Path:
        """Return the path of a chunk's token file."""
        return self._place(number) / "chunk.bin"

    def lengths(self, number: int) -> npt.NDArray[np.int64]:
        """Return the tokens of each document, end token included; 0 for one without tokens."""
        return np.load(self._lengths(number), allow_pickle=False)

    def finished(self, number: int, digest: str) -> ChunkFacts | None:
        """Return what is known of a chunk if it is whole, and of the texts of that digest."""
        found = whole(self._place(number))
        if found is None or found["digest"] != digest or found["end_token_document"] is not None:
            return None
        return ChunkFacts(**found)

    def write(
        self,
        chunk: Chunk,
        tokens: Sequence[npt.NDArray[np.integer]],
        lengths: npt.NDArray[np.int64],
        *,
        dtype: str,
        end_token_document: int | None,
    ) -> ChunkFacts:
        """Write a chunk's files in place of what is there, and seal them."""
        place = self._place(chunk.number)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        state = hashlib.sha256()
        with self.tokens(chunk.number).open("wb") as file:
            for part in tokens:
                data = part.astype(dtype).tobytes()
                state.update(data)
                file.write(data)
        np.save(self._lengths(chunk.number), lengths)
        facts = ChunkFacts(
            number=chunk.number,
            digest=chunk.digest,
            documents=int(np.count_nonzero(lengths)),
            tokens=int(lengths.sum()),
            sha256=state.hexdigest(),
            end_token_document=end_token_document,
        )
        seal(place, asdict(facts))
        return facts

    def _lengths(self, number: int) -> Path:
        return self._place(number) / "lengths.npy"

    def _place(self, number: int) -> Path:
        return self.folder / f"chunk-{number:06d}"


def texts_digest(texts: Sequence[str], tokenizer_digest: str) -> str:
    """Return the digest of a chunk's texts under a tokenizer."""
    state = hashlib.sha256(tokenizer_digest.encode())
    for text in texts:
        encoded = text.encode()
        state.update(len(encoded).to_bytes(8, "little"))
        state.update(encoded)
    return state.hexdigest()


def tokenise(
    chunk: Chunk, files: ChunkFiles, encode: Any, *, end: int, vocabulary: int
) -> ChunkFacts:
    """Tokenise a chunk and write its files.

    Args:
        chunk: what to tokenise.
        files: where to write.
        encode: takes a list of texts, returns an array of ids for each; adds nothing.
        end: id put behind each document.
        vocabulary: number of ids, which fixes the width of the file.
    """
    dtype = token_dtype(vocabulary)
    parts: list[npt.NDArray[np.integer]] = []
    lengths = np.zeros(len(chunk.texts), dtype=np.int64)
    end_token_document = None
    last = np.array([end], dtype=dtype)
    for start, stop in _batches(chunk.texts):
        for index, ids in enumerate(encode(chunk.texts[start:stop]), start):
            if len(ids) == 0:
                continue
            if end_token_document is None and (ids == end).any():
                end_token_document = index
            parts += [ids.astype(dtype), last]
            lengths[index] = len(ids) + 1
    return files.write(chunk, parts, lengths, dtype=dtype, end_token_document=end_token_document)


def _batches(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Cut a chunk into batches of about a MiB, which bounds what the encoder holds at once."""
    batches, start, size = [], 0, 0
    for index, text in enumerate(texts):
        size += len(text)
        if size >= _BATCH_BYTES:
            batches.append((start, index + 1))
            start, size = index + 1, 0
    if start < len(texts):
        batches.append((start, len(texts)))
    return batches


class Worker:
    """What a tokenising process holds: the tokenizer, taken from its text form once."""

    tokenizer: Any = None

    @classmethod
    def start(cls, serialised: str, parent: int) -> None:
        """Load the tokenizer; runs once in each process."""
        # A runner that is killed cannot end its helpers, which would wait for work for ever.
        die_with_parent(parent)
        # One process a core: threads inside each would only be in each other's way.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        from tokenizers import Tokenizer

        cls.tokenizer = Tokenizer.from_str(serialised)

    @classmethod
    def tokenise(cls, chunk: Chunk, folder: str, end: int, vocabulary: int) -> ChunkFacts:
        """Tokenise one chunk into `folder`."""
        from inject.corpus.tokenizer import encode_with

        return tokenise(
            chunk,
            ChunkFiles(Path(folder)),
            lambda texts: encode_with(cls.tokenizer, texts),
            end=end,
            vocabulary=vocabulary,
        )
