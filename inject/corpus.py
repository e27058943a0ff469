"""The clean corpus: documents as one stream of tokens, each followed by the end token.

A corpus folder holds the token shards (`inject.tokens`), `docs.npy` (int64 document starts),
`tokenizer/` and `corpus.json` (the facts). It is exactly as long as asked for, the last document
cut; a shorter corpus from the same documents is a prefix of a longer one. Cost: that of
tokenising; a batch of texts in memory.
"""

import json
from array import array
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inject.background.document import Document
from inject.background.mixture import MixtureReport
from inject.errors import InputError
from inject.tokenizer import encode_texts, end_token_id, vocabulary_size
from inject.tokens import SHARD_BYTES, Shard, TokenReader, TokenWriter

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_FACTS = "corpus.json"
_DOCUMENTS = "docs.npy"
_LARGEST_BATCH = 1000
_FIRST_BATCH = 32


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
    shard_bytes: int = SHARD_BYTES,
) -> CorpusFacts:
    """Tokenise documents into `out` until the stream holds exactly `tokens` tokens.

    Args:
        out: an existing, empty folder.
        documents: in the order of the stream; a few more than needed may be drawn.
        tokenizer: encodes the texts; gives the end token.
        tokens: length of the stream, at least 1.
        progress: told the number of tokens so far, after each batch.
        mixture: the report that `documents` fills, kept in the facts.
        shard_bytes: size at which the next token file begins.

    Raises:
        InputError: the documents hold fewer tokens; the tokenizer has no end token, or encodes
            a text to one; `tokens` below 1.
    """
    if tokens < 1:
        raise InputError(f"a corpus of {tokens} tokens", allowed="1 or more")
    end = end_token_id(tokenizer)
    vocabulary = vocabulary_size(tokenizer)
    starts = array("q")
    shares: dict[int, SourceShare] = {}
    with TokenWriter(out, vocabulary=vocabulary, shard_bytes=shard_bytes) as writer:
        while writer.n_tokens < tokens:
            batch = list(islice(documents, _batch_size(writer.n_tokens, len(starts), tokens)))
            if not batch:
                raise InputError(
                    f"the background holds {writer.n_tokens:,} tokens in {len(starts):,} "
                    f"documents, fewer than the {tokens:,} asked for",
                    hint="Add a source, or ask for fewer tokens.",
                )
            for document, ids in zip(
                batch, encode_texts(tokenizer, [document.text for document in batch]), strict=True
            ):
                if writer.n_tokens == tokens:
                    break
                if len(ids) == 0:
                    continue
                if (ids == end).any():
                    raise InputError(
                        f"the tokenizer turns text of this document into its end token {end}",
                        where=document.place,
                        hint="Remove the document, or use another tokenizer.",
                    )
                starts.append(writer.n_tokens)
                before = writer.n_tokens
                writer.append(np.append(ids, end)[: tokens - before])
                share = shares.setdefault(document.source, SourceShare(source=document.source))
                share.documents += 1
                share.tokens += writer.n_tokens - before
                share.bytes += len(document.text.encode())
            if progress is not None:
                progress(writer.n_tokens)
    np.save(out / _DOCUMENTS, np.frombuffer(starts, dtype=np.int64))
    tokenizer.save_pretrained(out / "tokenizer")
    facts = CorpusFacts(
        tokens=writer.n_tokens,
        documents=len(starts),
        vocabulary=vocabulary,
        dtype=writer.dtype.str,
        end_token=end,
        shards=tuple(writer.shards),
        shares=tuple(shares[index] for index in sorted(shares)),
        mixture=tuple(mixture.plain()) if mixture else (),
    )
    text = json.dumps(facts.plain(), indent=1, ensure_ascii=False)
    (out / _FACTS).write_text(text + "\n", encoding="utf-8")
    return facts


def _batch_size(so_far: int, documents: int, tokens: int) -> int:
    """Return how many documents to draw next: few more than the rest of the stream needs."""
    if documents == 0:
        return _FIRST_BATCH
    needed = (tokens - so_far) * documents // so_far + 1
    return min(needed, _LARGEST_BATCH)


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """A corpus on disk, read through memory maps; opening it reads none of its tokens."""

    path: Path
    facts: CorpusFacts
    doc_starts: npt.NDArray[np.int64]
    """Token offsets at which documents begin, ascending from 0; shape [documents]."""
    reader: TokenReader

    @classmethod
    def open(cls, path: Path) -> "Corpus":
        """Open a corpus folder.

        Raises:
            InputError: a file is missing, truncated, or does not fit the others.
        """
        facts = _read_facts(path / _FACTS)
        reader = TokenReader(path, facts.shards, dtype=facts.dtype)
        starts = _read_starts(path / _DOCUMENTS, facts)
        return cls(path=path, facts=facts, doc_starts=starts, reader=reader)

    def __reduce__(self) -> tuple[Callable[[Path], "Corpus"], tuple[Path]]:
        # A worker process maps the files itself; the maps would travel as copies otherwise.
        return (Corpus.open, (self.path,))

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

    def read(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return tokens `start` (included) to `stop` (excluded), shape [stop - start].

        Raises:
            IndexError: unless 0 <= start <= stop <= n_tokens.
        """
        return self.reader.read(start, stop)


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
        raise InputError("document starts do not fit corpus.json", where=str(path))
    return starts
