"""Importing a corpus, and auditing its text as that of any background.

Its files belong to somebody else and stay as they are. Where a document overlaps with an example,
its tokens are left out by the reader (`inject.corpus.excluded`), and the import reads on, so that
the stream is as long as asked for; or the documents are listed only, or nothing is imported. Cost:
decoding (about a million tokens a second) and the audit of the text; what is read on costs a second
reading of the files.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inject.corpus.background.document import Document
from inject.corpus.corpus import (
    STARTS_FILE,
    Corpus,
    CorpusFacts,
    DocumentPiece,
    decode_piece,
    document_pieces,
    write_facts,
)
from inject.corpus.excluded import Exclusions, write_excluded
from inject.errors import InputError
from inject.formats.importing import AnyImport, import_corpus
from inject.overlap.filter import OverlapFilter, write_overlaps

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SPARE = 1 << 16


def import_audited(
    out: Path,
    source: AnyImport,
    *,
    tokenizer: "PreTrainedTokenizerBase",
    tokens: int,
    audit: OverlapFilter | None,
    progress: Callable[[int], None] | None = None,
) -> CorpusFacts:
    """Write a corpus folder for token ids that exist, without the documents that overlap.

    Args:
        out: an existing, empty folder.
        source: what to import.
        tokenizer: the one that made the ids.
        tokens: length of the stream without what is left out.
        audit: compares the documents; says whether one stays. None where there is no rule.
        progress: called with the number of tokens compared so far.

    Raises:
        InputError: as `import_corpus`; too few tokens stay; documents overlap and the rules say
            to stop.
    """
    state, job = _AuditProgress(), _Job(out, source, tokenizer)
    length = tokens
    facts = job.take(length)
    if audit is None:
        return facts
    while True:
        corpus = Corpus.open(out)
        excluded = _audit_new_documents(corpus, tokenizer, audit, state, tokens, progress)
        missing = tokens - (length - excluded.tokens)
        if missing <= 0:
            break
        length = _import_more(job, length + missing, state, excluded.tokens)
    audit.require_none()
    if excluded.tokens:
        stop = excluded.place_of(tokens)
        if stop < length:
            job.take(stop)
            corpus = Corpus.open(out)
            state.left_out = {start for start in state.left_out if start < stop}
            excluded = _excluded(corpus, state)
        _leave_out(out, corpus, excluded)
    write_overlaps(out, audit.found, audit.facts())
    return Corpus.open(out).facts


class _Job(NamedTuple):
    """An import of any length."""

    out: Path
    source: AnyImport
    tokenizer: "PreTrainedTokenizerBase"

    def take(self, length: int) -> CorpusFacts:
        """Import the first tokens, in place of what was imported before."""
        return import_corpus(self.out, self.source, tokenizer=self.tokenizer, tokens=length)


def _import_more(job: _Job, length: int, state: "_AuditProgress", left_out: int) -> int:
    """Import at least `length` tokens, and more of them where there are, for what may follow.

    A document that the stream cuts goes on when it is longer, so that it is left out in steps.
    """
    spare = max(left_out, _SPARE)
    while True:
        try:
            job.take(length + spare)
        except InputError as error:
            if not spare:
                raise _with_reason(error, state, left_out) from error
            spare //= 4
        else:
            return length + spare


class _AuditProgress:
    """How far the audit is; positions are those of the files."""

    def __init__(self) -> None:
        self.left_out: set[int] = set()
        """Where the pieces start that overlap."""
        self.since = 0
        """Where the first piece starts, at the earliest, that was not compared."""


def _audit_new_documents(
    corpus: Corpus,
    tokenizer: "PreTrainedTokenizerBase",
    audit: OverlapFilter,
    state: _AuditProgress,
    tokens: int,
    progress: Callable[[int], None] | None,
) -> Exclusions:
    """Compare what was not compared yet, and return what is left out so far.

    The last document may go on behind the stream: it is compared when nothing more is needed.
    """
    waiting: list[DocumentPiece] = []
    for piece in document_pieces(corpus.doc_starts, corpus.n_tokens, since=state.since):
        if piece.read_to == corpus.n_tokens:
            waiting.append(piece)
            continue
        _compare(corpus, tokenizer, audit, state, piece)
        if progress is not None:
            progress(piece.stop)
    for piece in waiting:
        excluded = _excluded(corpus, state)
        if corpus.n_tokens - excluded.tokens < tokens:
            break
        _compare(corpus, tokenizer, audit, state, piece)
        if progress is not None:
            progress(piece.stop)
    return _excluded(corpus, state)


def _compare(
    corpus: Corpus,
    tokenizer: "PreTrainedTokenizerBase",
    audit: OverlapFilter,
    state: _AuditProgress,
    piece: DocumentPiece,
) -> None:
    place = f"document {piece.document}, token {piece.start}"
    if not audit(Document(decode_piece(corpus, tokenizer, piece), place)):
        state.left_out.add(piece.start)
    state.since = piece.start + 1


def _excluded(corpus: Corpus, state: _AuditProgress) -> Exclusions:
    """Return the stretches to leave out; that of a cut document grows with the stream."""
    found = []
    for start in sorted(state.left_out):
        piece = next(document_pieces(corpus.doc_starts, corpus.n_tokens, since=start))
        found.append((piece.start, piece.stop))
    return Exclusions(found)


def _leave_out(out: Path, corpus: Corpus, excluded: Exclusions) -> None:
    """Rewrite the facts and the document starts of an import for what is left of it."""
    starts = excluded.starts_of_the_rest(np.asarray(corpus.doc_starts), corpus.n_tokens)
    source_report = {**corpus.facts.mixture[0], "excluded_tokens": excluded.tokens}
    facts = replace(
        corpus.facts,
        tokens=corpus.n_tokens - excluded.tokens,
        documents=len(starts),
        mixture=(source_report,),
    )
    write_excluded(out, excluded)
    (out / STARTS_FILE).unlink()
    np.save(out / STARTS_FILE, starts)
    write_facts(out, facts)


def _with_reason(error: InputError, state: _AuditProgress, left_out: int) -> InputError:
    if not state.left_out:
        return error
    return InputError(
        f"{error.problem}; {len(state.left_out):,} documents with {left_out:,} tokens overlap "
        "with rows of the datasets and are left out",
        where=error.where,
        allowed=error.allowed,
        hint="Ask for fewer tokens, import more files, or change the rules under `audit`.",
    )
