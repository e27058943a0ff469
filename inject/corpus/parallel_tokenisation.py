"""Documents in, finished chunks of tokens out, in the order of the documents.

A chunk is a run of consecutive documents in the order of the stream. This process draws the
documents and cuts them into chunks only by their bytes, so chunks depend neither on the number of
processes nor on the remains of a killed build. At most one chunk per process plus one is in memory.
A sealed folder (`inject.verified_files`) has a chunk's tokens, the length of each of its documents,
and the digest of texts and tokenizer: a later build reuses it only if that digest agrees and the
folder is undamaged. So a killed build loses at most one chunk per process.
"""

import hashlib
import multiprocessing
import os
import shutil
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inject.corpus.background.document import Document
from inject.corpus.background.mixture import SourceReport, report_values
from inject.corpus.tokenizer import (
    AnyTokenizer,
    encode_texts,
    encode_with,
    end_token_id,
    vocabulary_size,
)
from inject.corpus.tokens import token_dtype
from inject.errors import InputError, SpikeinError
from inject.helper_processes import die_with_parent, usable_cores
from inject.verified_files import seal, verified_facts

WORTH_PROCESSES = 64 << 20
"""Bytes of text from which starting processes pays."""
_BYTES_A_TOKEN = 4
_LEAST_CHUNK, _MOST_CHUNK = 1 << 18, 1 << 26
_CHUNKS = 32
_BATCH_BYTES = 1 << 20
TOKENS_FILE, LENGTHS_FILE = "chunk.bin", "lengths.npy"
"""In a chunk's folder; lengths count the end token, and are 0 for a document without tokens."""

Encode = Callable[[Sequence[str]], list[npt.NDArray[np.int64]]]
"""From texts to the ids of each, with nothing added."""


class Chunk(NamedTuple):
    """The input of a chunk."""

    number: int
    """Its place in the stream, from 0."""
    digest: str
    """Of texts and tokenizer."""
    documents: tuple[Document, ...]
    mixture: tuple[dict[str, Any], ...]
    """The counts drawn from each source when the chunk was complete."""


class ChunkFacts(NamedTuple):
    """A finished chunk."""

    digest: str
    """Of texts and tokenizer."""
    tokens: int
    """End tokens included."""
    sha256: str
    """Of the token file."""
    end_token_document: int | None
    """The first document whose text contains the end token; the chunk is then unusable."""


def chunk_bytes(tokens: int) -> int:
    """Return the size of chunks for a corpus of that many tokens, in UTF-8 bytes."""
    return min(max(tokens * _BYTES_A_TOKEN // _CHUNKS, _LEAST_CHUNK), _MOST_CHUNK)


def processes_for(tokens: int) -> int:
    """Return the number of processes worth using: one per core, or only this one."""
    if tokens * _BYTES_A_TOKEN < WORTH_PROCESSES:
        return 1
    return len(usable_cores())


def chunk_folder(folder: Path, number: int) -> Path:
    """Return the folder of a chunk."""
    return folder / f"chunk-{number:06d}"


def finished_chunk(place: Path, digest: str) -> ChunkFacts | None:
    """Return the facts of a chunk if it is undamaged and its texts have that digest."""
    values = verified_facts(place)
    if values is None or values["digest"] != digest or values["end_token_document"] is not None:
        return None
    return ChunkFacts(**values)


def tokenise_documents(
    documents: Iterator[Document],
    *,
    folder: Path,
    tokenizer: AnyTokenizer,
    size: int,
    processes: int,
    report: Sequence[SourceReport],
) -> Generator[tuple[Chunk, ChunkFacts], None, None]:
    """Yield the chunks of a stream of documents in order, each tokenised into `folder`.

    Args:
        documents: in the order of the stream; drawn as they are needed, a few chunks ahead.
        folder: receives the chunks' files; may have those of a killed build.
        tokenizer: encodes the texts, and gives the id put after each document.
        size: UTF-8 bytes from which a chunk is complete.
        processes: 1 tokenises in this process, with the tokenizer's own threads.
        report: filled by `documents`.

    Raises:
        InputError: as the documents.
        SpikeinError: a tokenising process died.
    """
    end, vocabulary = end_token_id(tokenizer), vocabulary_size(tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    serialised = backend.to_str() if backend is not None else repr(tokenizer)
    digest = hashlib.sha256(f"{end} {vocabulary} {serialised}".encode()).hexdigest()
    # A tokenizer without a backend cannot be handed to another process as text.
    pool = _pool(serialised, processes) if processes > 1 and backend is not None else None
    waiting: deque[tuple[Chunk, Future[ChunkFacts] | ChunkFacts]] = deque()
    with pool or nullcontext() as running:
        try:
            for chunk in _chunks(documents, size, digest, report):
                place = chunk_folder(folder, chunk.number)
                job: Future[ChunkFacts] | ChunkFacts | None = finished_chunk(place, chunk.digest)
                texts = [document.text for document in chunk.documents]
                work = place, chunk.digest, texts, end, vocabulary
                if job is None and running is not None:
                    job = running.submit(Worker.tokenise, *work)
                waiting.append((chunk, job or tokenise(partial(encode_texts, tokenizer), *work)))
                while len(waiting) > (processes if running is not None else 0):
                    yield _wait_for_chunk(*waiting.popleft())
            while waiting:
                yield _wait_for_chunk(*waiting.popleft())
        finally:
            if running is not None:
                # Chunks in the works are waited for: they write into the folder until they end.
                running.shutdown(cancel_futures=True)


def _chunks(
    documents: Iterator[Document], size: int, digest: str, report: Sequence[SourceReport]
) -> Iterator[Chunk]:
    """Cut documents into chunks of at least `size` bytes, the last one smaller."""
    number, n_bytes = 0, 0
    state = hashlib.sha256(digest.encode())
    chunk_documents: list[Document] = []

    def cut() -> Chunk:
        return Chunk(
            number, state.hexdigest(), tuple(chunk_documents), tuple(report_values(report))
        )

    for document in documents:
        encoded = document.text.encode()
        state.update(len(encoded).to_bytes(8, "little"))
        state.update(encoded)
        chunk_documents.append(document)
        n_bytes += len(encoded)
        if n_bytes >= size:
            yield cut()
            number, n_bytes, chunk_documents = number + 1, 0, []
            state = hashlib.sha256(digest.encode())
    if chunk_documents:
        yield cut()


def _wait_for_chunk(chunk: Chunk, job: Future[ChunkFacts] | ChunkFacts) -> tuple[Chunk, ChunkFacts]:
    try:
        facts = job if isinstance(job, ChunkFacts) else job.result()
    except BrokenProcessPool as error:
        raise SpikeinError(
            f"a tokenising process died at chunk {chunk.number}, after "
            f"{chunk.documents[0].place}; the system may have been out of memory. Finished "
            "chunks are kept: run again, with fewer processes if it happens again."
        ) from error
    if facts.end_token_document is not None:
        raise InputError(
            "the tokenizer turns text of this document into its end token",
            where=chunk.documents[facts.end_token_document].place,
            hint="Remove the document, or use another tokenizer.",
        )
    return chunk, facts


def tokenise(
    encode: Encode, place: Path, digest: str, texts: Sequence[str], end: int, vocabulary: int
) -> ChunkFacts:
    """Tokenise a chunk, and write its folder, replacing an existing one.

    Args:
        encode: encodes texts.
        place: the chunk's folder.
        digest: of texts and tokenizer.
        texts: of its documents.
        end: id put after each document.
        vocabulary: number of ids, which fixes the width of the file.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    dtype = token_dtype(vocabulary)
    lengths = np.zeros(len(texts), dtype=np.int64)
    end_token_document = None
    state = hashlib.sha256()
    with (place / TOKENS_FILE).open("wb") as file:
        for start, stop in _batches(texts):
            for index, ids in enumerate(encode(texts[start:stop]), start):
                if len(ids) == 0:
                    continue
                if end_token_document is None and (ids == end).any():
                    end_token_document = index
                data = np.append(ids, end).astype(dtype).tobytes()
                state.update(data)
                file.write(data)
                lengths[index] = len(ids) + 1
    np.save(place / LENGTHS_FILE, lengths)
    facts = ChunkFacts(digest, int(lengths.sum()), state.hexdigest(), end_token_document)
    seal(place, facts._asdict())
    return facts


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Cut a chunk into batches of about a MiB, which bounds the encoder's memory."""
    start, size = 0, 0
    for stop, text in enumerate(texts, 1):
        size += len(text)
        if size >= _BATCH_BYTES or stop == len(texts):
            yield start, stop
            start, size = stop, 0


def _pool(serialised: str, processes: int) -> AbstractContextManager[ProcessPoolExecutor]:
    # A fork would copy the threads' locks of this process in whatever state they are.
    return ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=Worker.start,
        initargs=(serialised, os.getpid()),
    )


class Worker:
    """The state of a tokenising process: the tokenizer, read from its text form once."""

    encode: Encode

    @classmethod
    def start(cls, serialised: str, parent: int) -> None:
        """Load the tokenizer; runs once in each process."""
        # A runner that is killed cannot end its helpers, which would wait for work for ever.
        die_with_parent(parent)
        # One process a core: threads inside each would only be in each other's way.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        from tokenizers import Tokenizer

        cls.encode = partial(encode_with, Tokenizer.from_str(serialised))

    @classmethod
    def tokenise(
        cls, place: Path, digest: str, texts: Sequence[str], end: int, vocabulary: int
    ) -> ChunkFacts:
        """Tokenise one chunk."""
        return tokenise(cls.encode, place, digest, texts, end, vocabulary)
