"""The clean corpus: documents as one stream of tokens, each followed by the end token.

A corpus folder holds the token shards (`inject.corpus.tokens`), `docs.npy` (int64 document starts),
`tokenizer/` and `corpus.json` (the facts). An imported one can refer to files of somebody else
instead (`inject.corpus.imported_files`), and leave stretches of them out
(`inject.corpus.excluded`). It is exactly as long as asked for, the last document cut; a shorter
corpus from the same documents is a prefix of a longer one. Cost: that of tokenising; a few shards
of text in memory.
"""

import hashlib
import json
import os
import shutil
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inject.corpus.background.document import Document
from inject.corpus.background.mixture import MixtureReport
from inject.corpus.excluded import Reader, SkippingReader, read_excluded
from inject.corpus.imported_files import check_outside, shard_files
from inject.corpus.parallel_tokenisation import (
    TokenisedChunk,
    chunk_bytes,
    processes_for,
    tokenise_documents,
)
from inject.corpus.tokenised_chunks import ChunkFacts, ChunkFiles
from inject.corpus.tokenizer import end_token_id, load_tokenizer, vocabulary_size
from inject.corpus.tokens import Shard, TokenReader, check_shard, token_dtype
from inject.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FACTS_FILE = "corpus.json"
STARTS_FILE = "docs.npy"
TOKENIZER_FOLDER = "tokenizer"


@dataclass(kw_only=True)
class SourceShare:
    """What one source of the mixture gave to the corpus."""

    source: int
    """Its position in the mixture."""
    documents: int = 0
    tokens: int = 0
    """End tokens included."""
    bytes: int = 0
    """UTF-8 bytes of the documents; one that was cut counts whole."""


@dataclass(frozen=True, kw_only=True)
class CorpusFacts:
    """The content of `corpus.json`."""

    tokens: int
    documents: int
    vocabulary: int
    dtype: str
    """`<u2` or `<u4`, little-endian."""
    end_token: int
    shards: tuple[Shard, ...]
    shares: tuple[SourceShare, ...]
    """By source, what is in this corpus."""
    mixture: tuple[dict[str, Any], ...]
    """By source, what was drawn: a little more than the corpus holds, with what was dropped."""

    def plain(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        return {
            **asdict(self),
            "shards": [shard._asdict() for shard in self.shards],
        }


def build_corpus(
    out: Path,
    *,
    documents: Iterator[Document],
    tokenizer: "PreTrainedTokenizerBase",
    tokens: int,
    progress: Callable[[int], None] | None = None,
    mixture: MixtureReport | None = None,
    processes: int | None = None,
    unfinished: Path | None = None,
    size: int | None = None,
) -> CorpusFacts:
    """Tokenise documents into `out` until the stream holds exactly `tokens` tokens.

    The files are the same for any number of processes, and after any number of kills.

    Args:
        out: an existing, empty folder.
        documents: in the order of the stream; a few more than needed are drawn.
        tokenizer: encodes the texts; gives the end token.
        tokens: length of the stream, at least 1.
        progress: told the number of tokens so far, after each shard.
        mixture: the report that `documents` fills, kept in the facts.
        processes: how many tokenise; None for one a core where the corpus is large enough.
        unfinished: a folder on the same disk that survives a kill, for finished shards.
        size: UTF-8 bytes of text in a shard; None for one that fits `tokens`.

    Raises:
        InputError: the documents hold fewer tokens; the tokenizer has no end token, or encodes
            a text to one; `tokens` below 1.
        SpikeinError: a tokenising process died.
    """
    if tokens < 1:
        raise InputError(f"a corpus of {tokens} tokens", allowed="1 or more")
    vocabulary = vocabulary_size(tokenizer)
    collected = _Collected(out, vocabulary=vocabulary, tokens=tokens)
    with _workplace(out, unfinished) as folder:
        chunks = tokenise_documents(
            documents,
            folder=folder,
            tokenizer=tokenizer,
            end=end_token_id(tokenizer),
            vocabulary=vocabulary,
            size=size or chunk_bytes(tokens),
            processes=processes or processes_for(tokens),
            mixture=mixture,
        )
        with closing(chunks):
            for chunk in chunks:
                collected.add(chunk, ChunkFiles(folder))
                if progress is not None:
                    progress(collected.n_tokens)
                if collected.n_tokens == tokens:
                    break
    if collected.n_tokens < tokens:
        raise InputError(
            f"the background holds {collected.n_tokens:,} tokens in {len(collected.starts):,} "
            f"documents, fewer than the {tokens:,} asked for",
            hint="Add a source, or ask for fewer tokens.",
        )
    np.save(out / STARTS_FILE, np.frombuffer(collected.starts, dtype=np.int64))
    tokenizer.save_pretrained(out / TOKENIZER_FOLDER)
    facts = CorpusFacts(
        tokens=tokens,
        documents=len(collected.starts),
        vocabulary=vocabulary,
        dtype=token_dtype(vocabulary),
        end_token=end_token_id(tokenizer),
        shards=tuple(collected.shards),
        shares=tuple(collected.shares[index] for index in sorted(collected.shares)),
        mixture=collected.mixture,
    )
    write_facts(out, facts)
    return facts


def write_facts(folder: Path, facts: CorpusFacts) -> None:
    """Write `corpus.json` into a corpus folder, in place of what it said before."""
    text = json.dumps(facts.plain(), indent=1, ensure_ascii=False)
    (folder / FACTS_FILE).write_text(text + "\n", encoding="utf-8")


def corpus_tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """Load the tokenizer that a corpus was made with, from its folder."""
    return load_tokenizer(str(folder / TOKENIZER_FOLDER))


class _Collected:
    """What the finished chunks add up to."""

    def __init__(self, out: Path, *, vocabulary: int, tokens: int) -> None:
        self.n_tokens = 0
        self.starts = array("q")
        self.shards: list[Shard] = []
        self.shares: dict[int, SourceShare] = {}
        self.mixture: tuple[dict[str, Any], ...] = ()
        self._out = out
        self._limit = tokens
        self._element = np.dtype(token_dtype(vocabulary))

    def add(self, chunk: TokenisedChunk, files: ChunkFiles) -> None:
        """Take over a chunk's tokens, as far as the stream has room for them."""
        lengths = files.lengths(chunk.facts.number)
        starts = self.n_tokens + np.cumsum(lengths) - lengths
        used = (lengths > 0) & (starts < self._limit)
        self.starts.frombytes(starts[used].tobytes())
        for place in np.flatnonzero(used):
            document = chunk.documents[place]
            share = self.shares.setdefault(document.source, SourceShare(source=document.source))
            share.documents += 1
            share.tokens += int(min(lengths[place], self._limit - starts[place]))
            share.bytes += document.bytes
        self.mixture = chunk.mixture
        kept = min(chunk.facts.tokens, self._limit - self.n_tokens)
        if kept:
            self._take(chunk.facts, files.tokens(chunk.facts.number), kept)

    def _take(self, facts: ChunkFacts, source: Path, kept: int) -> None:
        name = f"tokens-{len(self.shards):05d}.bin"
        digest = facts.sha256
        if kept == facts.tokens:
            _link(source, self._out / name)
        else:
            with source.open("rb") as file:
                data = file.read(kept * self._element.itemsize)
            (self._out / name).write_bytes(data)
            digest = hashlib.sha256(data).hexdigest()
        self.shards.append(Shard(name, kept, digest))
        self.n_tokens += kept


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


def _link(source: Path, target: Path) -> None:
    """Give a finished file a second name; copy it where the file system has no links.

    The first name stays until the corpus is published, so that a kill loses nothing.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """A corpus on disk, read through memory maps; opening it reads none of its tokens."""

    path: Path
    facts: CorpusFacts
    doc_starts: npt.NDArray[np.int64]
    """Token offsets at which documents begin, ascending from 0; shape [documents]."""
    reader: Reader
    files: tuple[Path, ...]
    """Where the shards lie, in the order of the stream."""

    @classmethod
    def open(
        cls, path: Path, *, outside: Sequence[Path] | None = None, verified: bool = False
    ) -> "Corpus":
        """Open a corpus folder.

        Args:
            path: the folder.
            outside: where the files of an imported corpus lie now, in the order of the stream;
                None looks where they lay when it was imported.
            verified: whether somebody has compared those files with the corpus already.

        Raises:
            InputError: a file is missing, truncated, or does not fit the others; a file outside
                is not the one that was imported.
        """
        facts = _read_facts(path / FACTS_FILE)
        files = shard_files(path, facts.shards, outside)
        if not verified:
            check_outside(facts.shards, files)
        reader: Reader = TokenReader(path, facts.shards, dtype=facts.dtype, outside=files)
        excluded = read_excluded(path)
        if excluded is not None:
            reader = SkippingReader(reader, excluded)
        if reader.n_tokens != facts.tokens:
            raise InputError(
                f"the token files hold {reader.n_tokens:,} tokens that are part of the corpus, "
                f"{FACTS_FILE} says {facts.tokens:,}",
                where=str(path),
                hint="Delete this corpus and run again.",
            )
        starts = _read_starts(path / STARTS_FILE, facts)
        return cls(path=path, facts=facts, doc_starts=starts, reader=reader, files=files)

    def __reduce__(
        self,
    ) -> tuple[Callable[[Path, tuple[Path, ...]], "Corpus"], tuple[Path, tuple[Path, ...]]]:
        # A worker process maps the files itself; the maps would travel as copies otherwise.
        return (_reopened, (self.path, self.files))

    @property
    def n_tokens(self) -> int:
        """Length of the stream."""
        return self.facts.tokens

    @property
    def vocabulary(self) -> int:
        """Number of ids of the tokenizer."""
        return self.facts.vocabulary

    @property
    def dtype(self) -> str:
        """Element type of the token files: `<u2` or `<u4`."""
        return self.facts.dtype

    @property
    def end_token(self) -> int:
        """Id of the token after each document."""
        return self.facts.end_token

    def verify(self, progress: Callable[[int], None] | None = None) -> None:
        """Hash every token file and check every id; reads the whole corpus.

        Args:
            progress: told the number of tokens so far, after each shard.

        Raises:
            InputError: a shard was changed since it was written, even at equal length; an id
                lies outside the vocabulary. The shard is named.
        """
        position = 0
        for shard, file in zip(self.facts.shards, self.files, strict=True):
            check_shard(
                file,
                shard,
                dtype=self.facts.dtype,
                vocabulary=self.facts.vocabulary,
                position=position,
            )
            position += shard.tokens
            if progress is not None:
                progress(position)

    def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return tokens `start` (included) to `stop` (excluded), shape [stop - start].

        Raises:
            IndexError: unless 0 <= start <= stop <= n_tokens.
        """
        return self.reader.read(start, stop)


def _reopened(path: Path, files: tuple[Path, ...]) -> Corpus:
    return Corpus.open(path, outside=files, verified=True)


def _read_facts(path: Path) -> CorpusFacts:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        values["shards"] = tuple(Shard(**shard) for shard in values["shards"])
        values["shares"] = tuple(SourceShare(**share) for share in values["shares"])
        values["mixture"] = tuple(values["mixture"])
        return CorpusFacts(**values)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"not the facts of a corpus ({error})", where=str(path)) from error


def _read_starts(path: Path, facts: CorpusFacts) -> npt.NDArray[np.int64]:
    try:
        starts = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"document starts cannot be read ({error})", where=str(path)) from error
    fits = starts.dtype == np.int64 and starts.shape == (facts.documents,)
    if not fits or starts[0] != 0 or starts[-1] >= facts.tokens:
        raise InputError(f"document starts do not fit {FACTS_FILE}", where=str(path))
    return starts
