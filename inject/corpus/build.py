"""Building the clean corpus: documents become one stream of tokens.

Each document is followed by the end token. The corpus has exactly the requested length, the last
document cut; a shorter corpus from the same documents is a prefix of a longer one.
`inject.corpus.corpus` reads these files. Cost: that of tokenising; a few shards of text in
memory.
"""

import hashlib
import shutil
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inject.corpus.background.document import Document
from inject.corpus.background.mixture import SourceReport
from inject.corpus.corpus import (
    STARTS_FILE,
    TOKENIZER_FOLDER,
    CorpusFacts,
    SourceShare,
    write_facts,
)
from inject.corpus.parallel_tokenisation import (
    LENGTHS_FILE,
    TOKENS_FILE,
    Chunk,
    ChunkFacts,
    chunk_bytes,
    chunk_folder,
    processes_for,
    tokenise_documents,
)
from inject.corpus.tokenizer import AnyTokenizer, end_token_id, vocabulary_size
from inject.corpus.tokens import Shard, token_dtype
from inject.errors import InputError
from inject.files import link_or_copy


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """How a corpus is built; none of it changes the corpus, but for the size of its files."""

    processes: int | None = None
    """Number of tokenising processes; None: one per core if the corpus is large enough."""
    unfinished: Path | None = None
    """A folder on the same disk that survives a kill, for finished shards; None: there is none."""
    shard_bytes: int | None = None
    """UTF-8 bytes of text in a shard; None: a size that fits the length of the corpus."""


def build_corpus(
    out: Path,
    *,
    documents: Iterator[Document],
    tokenizer: AnyTokenizer,
    tokens: int,
    report: Sequence[SourceReport] = (),
    on_progress: Callable[[int], None] | None = None,
    options: BuildOptions | None = None,
) -> CorpusFacts:
    """Tokenise documents into `out` until the stream has exactly `tokens` tokens.

    The files are the same for any number of processes, and after any number of kills.

    Args:
        out: an existing, empty folder.
        documents: in the order of the stream; a few more than needed are drawn.
        tokenizer: encodes the texts; gives the end token.
        tokens: length of the stream, at least 1.
        report: filled by `documents`; it becomes part of the facts.
        on_progress: called with the number of tokens so far, after each shard.
        options: how the work is done; None for the defaults.

    Raises:
        InputError: documents with fewer tokens; the tokenizer has no end token, or encodes
            a text to one.
        SpikeinError: a tokenising process died.
    """
    options = options or BuildOptions()
    vocabulary = vocabulary_size(tokenizer)
    collected = _Collected(out, vocabulary=vocabulary, tokens=tokens)
    with _workplace(out, options.unfinished) as folder:
        chunks = tokenise_documents(
            documents,
            folder=folder,
            tokenizer=tokenizer,
            size=options.shard_bytes or chunk_bytes(tokens),
            processes=options.processes or processes_for(tokens),
            report=report,
        )
        with closing(chunks):
            for chunk, facts in chunks:
                collected.add(chunk, facts, chunk_folder(folder, chunk.number))
                if on_progress is not None:
                    on_progress(collected.n_tokens)
                if collected.n_tokens == tokens:
                    break
    if collected.n_tokens < tokens:
        raise too_short(f"{collected.n_tokens:,}", len(collected.starts), tokens)
    np.save(out / STARTS_FILE, np.frombuffer(collected.starts, dtype=np.int64))
    tokenizer.save_pretrained(out / TOKENIZER_FOLDER)
    corpus_facts = CorpusFacts(
        tokens=tokens,
        documents=len(collected.starts),
        vocabulary=vocabulary,
        dtype=token_dtype(vocabulary),
        end_token=end_token_id(tokenizer),
        shards=tuple(collected.shards),
        shares=tuple(collected.shares[index] for index in sorted(collected.shares)),
        mixture=collected.mixture,
    )
    write_facts(out, corpus_facts)
    return corpus_facts


def too_short(available: str, documents: int, tokens: int) -> InputError:
    """Return the error for a background with fewer tokens than requested."""
    return InputError(
        f"the background has {available} tokens in {documents:,} documents, fewer than the "
        f"{tokens:,} requested",
        hint="Add a source, or request fewer tokens.",
    )


class _Collected:
    """The totals of the finished chunks."""

    def __init__(self, out: Path, *, vocabulary: int, tokens: int) -> None:
        self.n_tokens = 0
        self.starts = array("q")
        self.shards: list[Shard] = []
        self.shares: dict[int, SourceShare] = {}
        self.mixture: tuple[dict[str, Any], ...] = ()
        self._out = out
        self._limit = tokens
        self._element = np.dtype(token_dtype(vocabulary))

    def add(self, chunk: Chunk, facts: ChunkFacts, place: Path) -> None:
        """Take over a chunk's tokens, as far as the stream has room for them."""
        lengths = np.load(place / LENGTHS_FILE, allow_pickle=False)
        starts = self.n_tokens + np.cumsum(lengths) - lengths
        used = (lengths > 0) & (starts < self._limit)
        self.starts.frombytes(starts[used].tobytes())
        for index in np.flatnonzero(used):
            document = chunk.documents[index]
            share = self.shares.setdefault(document.source, SourceShare(source=document.source))
            share.documents += 1
            share.tokens += int(min(lengths[index], self._limit - starts[index]))
            share.bytes += len(document.text.encode())
        self.mixture = chunk.mixture
        n_used = min(facts.tokens, self._limit - self.n_tokens)
        if n_used:
            self._take(facts, place / TOKENS_FILE, n_used)

    def _take(self, facts: ChunkFacts, source: Path, n_used: int) -> None:
        target = self._out / f"tokens-{len(self.shards):05d}.bin"
        digest = facts.sha256
        if n_used == facts.tokens:
            # The first name stays until the corpus is published, so that a kill loses nothing.
            link_or_copy(source, target)
        else:
            with source.open("rb") as file:
                data = file.read(n_used * self._element.itemsize)
            target.write_bytes(data)
            digest = hashlib.sha256(data).hexdigest()
        self.shards.append(Shard(target.name, n_used, digest))
        self.n_tokens += n_used


@contextmanager
def _workplace(out: Path, unfinished: Path | None) -> Iterator[Path]:
    """Yield the folder for chunks: the one that survives a kill, or one that goes at the end."""
    if unfinished is not None:
        unfinished.mkdir(parents=True, exist_ok=True)
        yield unfinished
        return
    folder = out / ".chunks"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
