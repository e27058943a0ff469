"""A clean corpus on disk: its folder, the facts in it, and random access to its tokens.

A corpus folder holds the token shards (`inject.corpus.tokens`), `docs.npy` (int64 document starts),
`tokenizer/` and `corpus.json` (the facts). An imported one can refer to files of somebody else
instead (`inject.corpus.imported_files`), and leave parts of them out (`inject.corpus.excluded`).
`inject.corpus.build` writes one. Opening a corpus maps its files and reads none of the tokens.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inject.corpus.excluded import Reader, SkippingReader, read_excluded
from inject.corpus.imported_files import check_outside, shard_files
from inject.corpus.tokenizer import load_tokenizer
from inject.corpus.tokens import Shard, TokenReader, check_shard
from inject.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FACTS_FILE = "corpus.json"
STARTS_FILE = "docs.npy"
TOKENIZER_FOLDER = "tokenizer"
PIECE, OVERLAP = 1 << 17, 1 << 13
"""A longer document is decoded in pieces that overlap by so many tokens, so that a file without
document ends needs no more memory than a document."""


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


def write_facts(folder: Path, facts: CorpusFacts) -> None:
    """Write `corpus.json` into a corpus folder, in place of what it said before."""
    text = json.dumps(facts.plain(), indent=1, ensure_ascii=False)
    (folder / FACTS_FILE).write_text(text + "\n", encoding="utf-8")


def corpus_tokenizer(folder: Path) -> "PreTrainedTokenizerBase":
    """Load the tokenizer that a corpus was made with, from its folder."""
    return load_tokenizer(str(folder / TOKENIZER_FOLDER))


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
        facts = read_facts(path)
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
            progress: called with the number of tokens so far, after each shard.

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


def read_facts(folder: Path) -> CorpusFacts:
    """Read `corpus.json` of a corpus folder.

    Raises:
        InputError: there is none, or it cannot be read.
    """
    path = folder / FACTS_FILE
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


class DocumentPiece(NamedTuple):
    """A document, or a part of a long one."""

    document: int
    """Index of the document."""
    start: int
    """Position of its first token."""
    stop: int
    """One past its last one."""
    read_to: int
    """Where its text ends, which overlaps with the next piece of a long document."""


def document_pieces(
    starts: npt.NDArray[np.int64], n_tokens: int, *, since: int = 0
) -> Iterator[DocumentPiece]:
    """Yield the documents of a stream, long ones in pieces.

    Args:
        starts: document starts, ascending from 0.
        n_tokens: length of the stream.
        since: position of the first piece to yield.
    """
    first = int(np.searchsorted(starts, since, side="right")) - 1
    for document in range(max(first, 0), len(starts)):
        start = int(starts[document])
        stop = int(starts[document + 1]) if document + 1 < len(starts) else n_tokens
        for place in range(start, stop, PIECE):
            if place >= since:
                end = min(place + PIECE, stop)
                yield DocumentPiece(document, place, end, min(end + OVERLAP, stop))


def decode_piece(corpus: Corpus, tokenizer: "PreTrainedTokenizerBase", piece: DocumentPiece) -> str:
    """Return the text of a piece, without end tokens."""
    ids = corpus.read(piece.start, piece.read_to)
    text = tokenizer.decode(ids[ids != corpus.end_token], clean_up_tokenization_spaces=False)
    return str(text)
