"""Documents in, finished chunks of tokens out, in the order of the documents.

The documents are drawn by this process and cut into chunks by their bytes alone, so chunks do not
depend on how many processes tokenise them, nor on what a killed build left behind. At most one
chunk a process and one more are held. A finished chunk in the folder is used again when its texts
are the same: a killed build loses at most one chunk a process.
"""

import hashlib
import multiprocessing
import os
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from inject.corpus.background.document import Document
from inject.corpus.background.mixture import MixtureReport
from inject.corpus.tokenised_chunks import (
    Chunk,
    ChunkFacts,
    ChunkFiles,
    Worker,
    texts_digest,
    tokenise,
)
from inject.corpus.tokenizer import encode_texts
from inject.errors import InputError, SpikeinError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

WORTH_PROCESSES = 64 << 20
"""Bytes of text from which starting processes pays."""
_BYTES_A_TOKEN = 4
_LEAST_CHUNK, _MOST_CHUNK = 1 << 18, 1 << 26
_CHUNKS = 32


class DrawnDocument(NamedTuple):
    """What is kept of a document while its chunk is tokenised."""

    place: str
    source: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class TokenisedChunk:
    """A finished chunk, and the documents that it was made from."""

    facts: ChunkFacts
    documents: tuple[DrawnDocument, ...]
    mixture: tuple[dict[str, Any], ...]
    """What had been drawn from each source when the chunk was complete."""


def chunk_bytes(tokens: int) -> int:
    """Return the size of chunks for a corpus of that many tokens, in UTF-8 bytes."""
    return min(max(tokens * _BYTES_A_TOKEN // _CHUNKS, _LEAST_CHUNK), _MOST_CHUNK)


def processes_for(tokens: int) -> int:
    """Return how many processes are worth starting: one a core, or none beside this one."""
    if tokens * _BYTES_A_TOKEN < WORTH_PROCESSES:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def tokenise_documents(
    documents: Iterator[Document],
    *,
    folder: Path,
    tokenizer: "PreTrainedTokenizerBase",
    end: int,
    vocabulary: int,
    size: int,
    processes: int,
    mixture: MixtureReport | None,
) -> Generator[TokenisedChunk, None, None]:
    """Yield the chunks of a stream of documents in order, each tokenised into `folder`.

    Args:
        documents: in the order of the stream; drawn as they are needed, a few chunks ahead.
        folder: takes the chunks' files; may hold those of a killed build.
        tokenizer: encodes the texts.
        end: id put behind each document.
        vocabulary: number of ids.
        size: UTF-8 bytes from which a chunk is complete.
        processes: 1 tokenises in this process, with the tokenizer's own threads.
        mixture: the report that `documents` fills.

    Raises:
        InputError: as the documents.
        SpikeinError: a tokenising process died.
    """
    files = ChunkFiles(folder)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    serialised = backend.to_str() if backend is not None else repr(tokenizer)
    digest = hashlib.sha256(f"{end} {vocabulary} {serialised}".encode()).hexdigest()
    # A tokenizer without a backend cannot be handed to another process as text.
    pool = _pool(serialised, processes) if processes > 1 and backend is not None else None

    def here(chunk: Chunk) -> ChunkFacts:
        return tokenise(
            chunk,
            files,
            lambda texts: encode_texts(tokenizer, texts),
            end=end,
            vocabulary=vocabulary,
        )

    waiting: deque[tuple[Future[ChunkFacts] | ChunkFacts, _Cut]] = deque()
    with pool or nullcontext() as running:
        try:
            for cut in _cut(documents, size, digest, mixture):
                found = files.finished(cut.chunk.number, cut.chunk.digest)
                if found is not None:
                    waiting.append((found, cut))
                elif running is None:
                    waiting.append((here(cut.chunk), cut))
                else:
                    job = running.submit(Worker.tokenise, cut.chunk, str(folder), end, vocabulary)
                    waiting.append((job, cut))
                while len(waiting) > (processes if running is not None else 0):
                    yield _finished(*waiting.popleft())
            while waiting:
                yield _finished(*waiting.popleft())
        finally:
            if running is not None:
                # Chunks in the works are waited for: they write into the folder until they end.
                running.shutdown(cancel_futures=True)


class _Cut(NamedTuple):
    chunk: Chunk
    documents: tuple[DrawnDocument, ...]
    mixture: tuple[dict[str, Any], ...]


def _cut(
    documents: Iterator[Document], size: int, digest: str, mixture: MixtureReport | None
) -> Iterator[_Cut]:
    """Cut documents into chunks of at least `size` bytes, the last one smaller."""
    number, held = 0, 0
    texts: list[str] = []
    drawn: list[DrawnDocument] = []

    def cut() -> _Cut:
        return _Cut(
            Chunk(number, tuple(texts), texts_digest(texts, digest)),
            tuple(drawn),
            tuple(mixture.plain()) if mixture else (),
        )

    for document in documents:
        count = len(document.text.encode())
        texts.append(document.text)
        drawn.append(DrawnDocument(document.place, document.source, count))
        held += count
        if held >= size:
            yield cut()
            number, held, texts, drawn = number + 1, 0, [], []
    if texts:
        yield cut()


def _finished(job: "Future[ChunkFacts] | ChunkFacts", cut: _Cut) -> TokenisedChunk:
    if isinstance(job, ChunkFacts):
        facts = job
    else:
        try:
            facts = job.result()
        except BrokenProcessPool as error:
            raise SpikeinError(
                f"a tokenising process died at chunk {cut.chunk.number}, after "
                f"{cut.documents[0].place}; the system may have been out of memory. Finished "
                "chunks are kept: run again, with fewer processes if it happens again."
            ) from error
    if facts.end_token_document is not None:
        raise InputError(
            "the tokenizer turns text of this document into its end token",
            where=cut.documents[facts.end_token_document].place,
            hint="Remove the document, or use another tokenizer.",
        )
    return TokenisedChunk(facts=facts, documents=cut.documents, mixture=cut.mixture)


def _pool(serialised: str, processes: int) -> AbstractContextManager[ProcessPoolExecutor]:
    # A fork would copy the threads' locks of this process in whatever state they are.
    return ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=Worker.start,
        initargs=(serialised, os.getpid()),
    )
