"""A clean corpus on disk: its folder, the facts in it, and random access to its tokens.

A corpus folder has the token shards (`inject.corpus.tokens`), `docs.npy` (int64 document starts),
`tokenizer/` and `corpus.json` (the facts). `inject.corpus.build` writes one. Opening a corpus maps
its files and reads none of the tokens.

An imported corpus can refer to external files and omit parts of them (`inject.corpus.tokens`). The
facts name them by SHA-256 and never by a path, so that a copy in another folder is the same corpus,
and moved files are found at the paths that the experiment gives. Without such paths (an export of
an old run), the paths of the import are tried. Opening the corpus compares the content first. Cost:
one reading of the files per process (about 1 GB/s with the SHA instructions of recent processors),
shared with that for the experiment's identity.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inject.corpus.tokenizer import AnyTokenizer, load_tokenizer
from inject.corpus.tokens import Shard, TokenReader, check_shard, read_excluded
from inject.digest import digest, file_digest
from inject.errors import InputError, reading
from inject.keyed import I64
from inject.reading.change_guard import content_digest
from inject.step import MANIFEST, InputProjection

FACTS_FILE = "corpus.json"
STARTS_FILE = "docs.npy"
TOKENIZER_FOLDER = "tokenizer"
PLACES = "outside.json"
"""In the corpus folder: the paths of an import's files."""

TOKENS = InputProjection(facet="tokens")
"""The part of a corpus that steps read: its tokens, without the records of its sources and of
dropped documents. So an audit rule that drops no further document retrains no model."""
OF_CORPUS: Mapping[str, str] = {"tokens": f"{__name__}:tokens"}
"""The facets of a corpus, for `Step.facets`."""
_REPORTS = ("mixture", "shares")
"""The facts in `corpus.json` on the sources, which only the page reads."""

PIECE, OVERLAP = 1 << 17, 1 << 13
"""A longer document is decoded in pieces that overlap by this many tokens, so that a file without
document ends needs no more memory than a document."""


@dataclass(kw_only=True)
class SourceShare:
    """The contribution of one source of the mixture to the corpus."""

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
    """By source, the content of this corpus."""
    mixture: tuple[dict[str, Any], ...]
    """By source, the draws: slightly more than the corpus has, including dropped documents."""


def write_facts(folder: Path, facts: CorpusFacts) -> None:
    """Write `corpus.json` into a corpus folder, replacing an earlier one."""
    text = json.dumps(asdict(facts), indent=1, ensure_ascii=False)
    (folder / FACTS_FILE).write_text(text + "\n", encoding="utf-8")


def corpus_tokenizer(folder: Path) -> AnyTokenizer:
    """Load the tokenizer that a corpus was made with, from its folder."""
    return load_tokenizer(str(folder / TOKENIZER_FOLDER))


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """A corpus on disk, read through memory maps; opening it reads none of its tokens."""

    path: Path
    facts: CorpusFacts
    doc_starts: I64
    """Token offsets at which documents begin, ascending from 0; shape [documents]."""
    reader: TokenReader
    files: tuple[Path, ...]
    """The paths of the shards, in the order of the stream."""

    @classmethod
    def open(
        cls, path: Path, *, outside: Sequence[Path] | None = None, verified: bool = False
    ) -> "Corpus":
        """Open a corpus folder.

        Args:
            path: the folder.
            outside: the current paths of an imported corpus's files, in the order of the stream;
                None uses their paths at import.
            verified: whether those files have already been compared with the corpus.

        Raises:
            InputError: a file is missing, truncated, or does not fit the others; a file outside
                is not the one that was imported.
        """
        facts = read_facts(path)
        files = shard_files(path, facts.shards, outside)
        if not verified:
            check_outside(facts.shards, files)
        reader = TokenReader(files, facts.shards, dtype=facts.dtype, excluded=read_excluded(path))
        if reader.n_tokens != facts.tokens:
            raise InputError(
                f"the token files have {reader.n_tokens:,} tokens that are part of the corpus, but "
                f"{FACTS_FILE} lists {facts.tokens:,}",
                where=str(path),
                hint="Delete this corpus and run again.",
            )
        starts = _read_starts(path / STARTS_FILE, facts)
        return cls(path=path, facts=facts, doc_starts=starts, reader=reader, files=files)

    @property
    def n_tokens(self) -> int:
        """Length of the stream."""
        return self.facts.tokens

    def verify(self) -> None:
        """Hash every token file; reads the whole corpus.

        Raises:
            InputError: a shard was changed since it was written, even at equal length; names it.
        """
        for shard, file in zip(self.facts.shards, self.files, strict=True):
            check_shard(file, shard, dtype=self.facts.dtype)

    def read(self, start: int, stop: int) -> I64:
        """Return tokens `start` (included) to `stop` (excluded), shape [stop - start].

        Raises:
            IndexError: unless 0 <= start <= stop <= n_tokens.
        """
        return self.reader.read(start, stop)


def read_facts(folder: Path) -> CorpusFacts:
    """Read `corpus.json` of a corpus folder.

    Raises:
        InputError: a missing or unreadable file.
    """
    path = folder / FACTS_FILE
    with reading(path, "not the facts of a corpus"):
        values = json.loads(path.read_text(encoding="utf-8"))
        values["shards"] = tuple(Shard(**shard) for shard in values["shards"])
        values["shares"] = tuple(SourceShare(**share) for share in values["shares"])
        values["mixture"] = tuple(values["mixture"])
        return CorpusFacts(**values)


def _read_starts(path: Path, facts: CorpusFacts) -> I64:
    with reading(path, "document starts cannot be read"):
        starts = np.load(path, mmap_mode="r", allow_pickle=False)
    fits = starts.dtype == np.int64 and starts.shape == (facts.documents,)
    if not fits or starts[0] != 0 or starts[-1] >= facts.tokens:
        raise InputError(f"document starts do not fit {FACTS_FILE}", where=str(path))
    return starts


def write_places(folder: Path, files: Sequence[Path]) -> None:
    """Record the paths of an import's files."""
    text = json.dumps([str(file) for file in files], indent=1, ensure_ascii=False)
    (folder / PLACES).write_text(text + "\n", encoding="utf-8")


def shard_files(
    folder: Path, shards: Sequence[Shard], outside: Sequence[Path] | None
) -> tuple[Path, ...]:
    """Return the paths of the shards, in the order of the stream.

    Args:
        folder: the corpus's.
        shards: its shards.
        outside: the paths of external files; None for their paths at import.

    Raises:
        InputError: fewer files than shards, or paths that cannot be read.
    """
    if not any(shard.outside for shard in shards):
        return tuple(folder / shard.name for shard in shards)
    files = _places(folder) if outside is None else list(outside)
    if len(files) < len(shards):
        raise InputError(
            f"the import names {len(files)} token files, but the corpus was made from "
            f"{len(shards)}",
            where=str(folder),
            hint="Name all files that were imported, in the same order.",
        )
    return tuple(files[: len(shards)])


def check_outside(shards: Sequence[Shard], files: Sequence[Path]) -> None:
    """Compare external files with the import, by content.

    Raises:
        InputError: a file is gone or is another one; names it.
    """
    for shard, file in zip(shards, files, strict=True):
        if not shard.outside:
            continue
        if not file.is_file():
            raise InputError(
                "the token file no longer exists",
                where=str(file),
                hint="Give its new path in corpus.imported; only its content counts, not its path.",
            )
        if content_digest(file) != shard.file_sha256:
            raise InputError(
                "the token file is not the one that was imported: its content changed since",
                where=str(file),
                hint="Bring the imported file back, or run again to import this one.",
            )


def _places(folder: Path) -> list[Path]:
    path = folder / PLACES
    with reading(path):
        return [Path(str(name)) for name in json.loads(path.read_text(encoding="utf-8"))]


def tokens(folder: Path) -> str:
    """Return the digest of the content that `TOKENS` names."""
    facts = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
    content_facts = {name: value for name, value in facts.items() if name not in _REPORTS}
    # Content of an import's files after the tokens that are used does not count.
    content_facts["shards"] = [
        {name: value for name, value in shard.items() if name != "file_sha256"}
        for shard in facts["shards"]
    ]
    shards = {shard["name"] for shard in facts["shards"]}
    files = {
        name: file_digest(path)
        for path in folder.rglob("*")
        if path.is_file()
        and (name := path.relative_to(folder).as_posix())
        not in (FACTS_FILE, MANIFEST, PLACES, *shards)
        and not name.startswith("overlaps.")
    }
    return digest({"facts": content_facts, "files": files})


class DocumentPiece(NamedTuple):
    """A document, or a part of a long one."""

    document: int
    """Index of the document."""
    start: int
    """Position of its first token."""
    stop: int
    """One past its last one."""
    read_to: int
    """The end of its text, which overlaps with the next piece of a long document."""


def document_pieces(starts: I64, n_tokens: int, *, since: int = 0) -> Iterator[DocumentPiece]:
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


def decode_piece(corpus: Corpus, tokenizer: AnyTokenizer, piece: DocumentPiece) -> str:
    """Return the text of a piece, without end tokens."""
    ids = corpus.read(piece.start, piece.read_to)
    text = tokenizer.decode(ids[ids != corpus.facts.end_token], clean_up_tokenization_spaces=False)
    return str(text)
