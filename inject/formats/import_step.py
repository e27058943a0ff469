"""The step that imports a corpus, and audits its text as that of any background.

Its files are external and stay unchanged. If a document overlaps with an example, the reader omits
its tokens (`inject.corpus.tokens`), and the import reads on, so that the stream has the requested
length; or the documents are listed only, or nothing is imported. Cost: decoding (about a million
tokens a second) and the audit of the text; further tokens cost a second reading of the files.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from inject.corpus.background.document import Document
from inject.corpus.corpus import (
    STARTS_FILE,
    Corpus,
    CorpusFacts,
    decode_piece,
    document_pieces,
    read_facts,
    write_facts,
)
from inject.corpus.tokenizer import AnyTokenizer, load_tokenizer
from inject.corpus.tokens import Exclusions, write_excluded
from inject.errors import InputError
from inject.formats.importing import AnyImport, import_corpus
from inject.overlap.corpus_step import SearchedRows, corpus_step
from inject.overlap.filter import OverlapFilter, write_overlaps
from inject.reading.change_guard import unchanged
from inject.settings import plain
from inject.step import Cost, Step, StepContext

_IMPORT: TypeAdapter[AnyImport] = TypeAdapter(AnyImport)
_SPARE = 1 << 16


def import_step(
    imported: AnyImport, tokenizer: Step, *, tokens: int, seed: int, searched: SearchedRows
) -> Step:
    """Import the first `tokens` tokens; documents that overlap with a row are skipped and listed.

    The files' paths are execution (`inject.stream.inputs.corpus_execution`).
    """
    step = corpus_step(
        (),
        _identity(imported),
        tokenizer,
        tokens=tokens,
        seed=seed,
        searched=searched,
        label=imported.kind,
    )
    return replace(
        step,
        function=f"{__name__}:build",
        execution={"imported": plain(imported), "searched": plain(searched)},
        cost=Cost(),
    )


def build(context: StepContext) -> None:
    """Write the corpus, and the documents that were left out."""
    tokens = context.settings["tokens"]
    imported = _IMPORT.validate_python(context.execution["imported"])
    searched = SearchedRows.model_validate(context.execution["searched"])
    with unchanged("corpus.imported", lambda: _identity(imported), context.settings["sources"]):
        import_audited(
            context.out,
            imported,
            tokenizer=load_tokenizer(str(context.inputs["tokenizer"])),
            tokens=tokens,
            audit=searched.filter(context.settings),
            progress=lambda done: context.report(done, tokens, unit="tokens"),
        )


def _identity(imported: AnyImport) -> list[dict[str, Any]]:
    return [{"imported": imported.identity()}]


def import_audited(
    out: Path,
    source: AnyImport,
    *,
    tokenizer: AnyTokenizer,
    tokens: int,
    audit: OverlapFilter | None,
    progress: Callable[[int], None] = lambda _done: None,
) -> CorpusFacts:
    """Write a corpus folder for token ids that exist, without the documents that overlap.

    Args:
        out: an existing, empty folder.
        source: the corpus to import.
        tokenizer: the one that made the ids.
        tokens: length of the stream without excluded tokens.
        audit: compares the documents and decides whether one stays. None without a rule.
        progress: called with the number of tokens compared so far.

    Raises:
        InputError: as `import_corpus`; too few tokens stay; documents overlap and the rules
            require a stop.
    """
    facts = import_corpus(out, source, tokenizer=tokenizer, tokens=tokens)
    if audit is None:
        return facts
    job = _AuditedImport(out, source, tokenizer)
    while True:
        job.compare(audit, tokens, progress)
        missing = tokens - (job.corpus.n_tokens - job.excluded().tokens)
        if missing <= 0:
            break
        job.import_more(missing)
    audit.require_none()
    if job.left_out:
        job.leave_out(tokens)
    write_overlaps(out, audit.found, audit.facts())
    return read_facts(out)


class _AuditedImport:
    """An import of any length, and how far it is compared; positions are those of the files."""

    def __init__(self, out: Path, source: AnyImport, tokenizer: AnyTokenizer) -> None:
        self.corpus = Corpus.open(out)
        self.left_out: set[int] = set()
        """The starts of the pieces that overlap."""
        self._since = 0
        """The earliest start of a piece that was not compared."""
        self._source = source
        self._tokenizer = tokenizer

    def compare(self, audit: OverlapFilter, tokens: int, progress: Callable[[int], None]) -> None:
        """Compare the pieces that were not compared yet.

        The last document may continue after the stream: it is compared when nothing more is needed.
        """
        corpus = self.corpus
        for piece in document_pieces(corpus.doc_starts, corpus.n_tokens, since=self._since):
            is_last = piece.read_to == corpus.n_tokens
            if is_last and corpus.n_tokens - self.excluded().tokens < tokens:
                break
            text = decode_piece(corpus, self._tokenizer, piece)
            if not audit(Document(text, f"document {piece.document}, token {piece.start}")):
                self.left_out.add(piece.start)
            self._since = piece.start + 1
            progress(piece.stop)

    def excluded(self) -> Exclusions:
        """Return the spans to leave out; that of a cut document grows with the stream."""
        starts, length = self.corpus.doc_starts, self.corpus.n_tokens
        pieces = [next(document_pieces(starts, length, since=at)) for at in sorted(self.left_out)]
        return Exclusions([(piece.start, piece.stop) for piece in pieces])

    def import_more(self, missing: int) -> None:
        """Import this many more tokens, and further ones if available, for later needs.

        A document that the stream cuts continues in a longer stream, so it is left out in steps.
        """
        left_out = self.excluded().tokens
        length, spare = self.corpus.n_tokens + missing, max(left_out, _SPARE)
        while True:
            try:
                return self._take(length + spare)
            except InputError as error:
                if spare:
                    spare //= 4
                elif self.left_out:
                    raise self._too_short(error, left_out) from error
                else:
                    raise

    def leave_out(self, tokens: int) -> None:
        """Cut the import to `tokens` that stay; rewrite facts and document starts for them."""
        excluded = self.excluded()
        stop = excluded.place_of(tokens)
        if stop < self.corpus.n_tokens:
            self._take(stop)
            self.left_out = {start for start in self.left_out if start < stop}
            excluded = self.excluded()
        corpus = self.corpus
        starts = excluded.starts_of_the_rest(np.asarray(corpus.doc_starts), corpus.n_tokens)
        facts = replace(
            corpus.facts,
            tokens=corpus.n_tokens - excluded.tokens,
            documents=len(starts),
            mixture=({**corpus.facts.mixture[0], "excluded_tokens": excluded.tokens},),
        )
        write_excluded(corpus.path, excluded)
        (corpus.path / STARTS_FILE).unlink()
        np.save(corpus.path / STARTS_FILE, starts)
        write_facts(corpus.path, facts)

    def _take(self, length: int) -> None:
        """Import the first tokens, replacing an earlier import."""
        out = self.corpus.path
        import_corpus(out, self._source, tokenizer=self._tokenizer, tokens=length)
        self.corpus = Corpus.open(out)

    def _too_short(self, error: InputError, left_out: int) -> InputError:
        return InputError(
            f"{error.problem}; {len(self.left_out):,} documents with {left_out:,} tokens overlap "
            "with rows of the datasets and are left out",
            where=error.where,
            allowed=error.allowed,
            hint="Ask for fewer tokens, import more files, or change the rules under `audit`.",
        )
