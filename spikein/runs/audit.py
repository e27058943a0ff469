"""The audits of a finished run, and a new search of its background by other rules.

The background is read back from the corpus, document by document: its tokens are decoded, so the
sources are no longer needed. Nothing is written.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.page.streams import stream_audits
from inject.corpus.background.document import Document
from inject.corpus.corpus import corpus_tokenizer, decode_piece, document_pieces
from inject.examples.example import read_examples, read_held_out
from inject.overlap.filter import OverlapFacts, OverlapFilter, read_overlaps
from inject.overlap.index import Overlap
from inject.overlap.settings import OverlapSettings
from inject.stream.audit_report import AuditReport
from inject.stream.exposures import CopyOutcomes, copy_outcomes, read_exposures
from spikein.runs.streams import RunArm, open_run_corpus, run_arms
from spikein.store.manifest import SHORT

Comparison = tuple[list[Overlap], OverlapFacts]
"""Overlaps of a background with examples."""


@dataclass(frozen=True, kw_only=True)
class RunAudit:
    """The audits of a run."""

    streams: dict[str, AuditReport]
    """By arm, or by all arms that share the stream."""
    fed: dict[str, CopyOutcomes]
    """Outcomes of each model's copies, by label; only models with copies."""
    dropped: dict[str, Comparison]
    """Documents dropped from each corpus when it was built, by its folder's name."""
    repeated: dict[str, Comparison]
    """Overlaps in each corpus by the given rules."""

    @property
    def clean(self) -> bool:
        """Whether every stream passed, no copy was altered, and the given rules find nothing."""
        return (
            all(audit.passed for audit in self.streams.values())
            and not any(audit.altered for audit in self.fed.values())
            and not any(overlaps for overlaps, _ in self.repeated.values())
        )


def audit_run(
    folder: Path,
    *,
    rules: OverlapSettings | None,
    store: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RunAudit:
    """Return the audits of a run; with `rules`, compare its background with its examples again.

    Args:
        folder: the run's folder.
        rules: what counts as an overlap; None reads only the existing audits.
        store: the store's folder; None for the recorded one.
        progress: called with the tokens done, and the total.

    Raises:
        InputError: for a run without an arm, or a missing or damaged artifact.
    """
    arms = run_arms(folder, store)
    corpora = {
        arm.corpus: [sibling for sibling in arms if sibling.corpus == arm.corpus] for arm in arms
    }
    dropped = {
        path.name: overlaps for path in corpora if (overlaps := read_overlaps(path)) is not None
    }
    repeated = {}
    if rules is not None:
        repeated = {
            path.name: _compare_background(folder, path, users, rules, progress)
            for path, users in corpora.items()
        }
    return RunAudit(
        streams=stream_audits([(arm.label, arm.audit) for arm in arms]),
        fed=_outcomes_by_arm(arms),
        dropped=dropped,
        repeated=repeated,
    )


def _outcomes_by_arm(arms: list[RunArm]) -> dict[str, CopyOutcomes]:
    outcomes = {}
    for arm in arms:
        copies = copy_outcomes(read_exposures(arm.model))
        if copies.planned:
            digest = f" ({arm.model.name[-SHORT:]})" if arm.label in outcomes else ""
            outcomes[arm.label + digest] = copies
    return outcomes


def _compare_background(
    folder: Path,
    path: Path,
    users: list[RunArm],
    rules: OverlapSettings,
    progress: Callable[[int, int], None] | None,
) -> Comparison:
    pools = {arm.examples for arm in users}
    examples = {
        example.example_id: example
        for pool in pools
        for example in (*read_examples(pool), *read_held_out(pool))
    }
    audit = OverlapFilter(list(examples.values()), rules.model_copy(update={"drop": False}))
    for document in _documents(folder, path, progress):
        audit(document)
    return audit.found, audit.facts()


def _documents(
    folder: Path, path: Path, progress: Callable[[int, int], None] | None
) -> Iterator[Document]:
    """Yield the documents of a corpus as text, long ones in pieces."""
    corpus = open_run_corpus(folder, path)
    tokenizer = corpus_tokenizer(path)
    for number, piece in enumerate(document_pieces(corpus.doc_starts, corpus.n_tokens)):
        yield Document(decode_piece(corpus, tokenizer, piece), f"document {piece.document}")
        if progress is not None and (number % 100 == 0 or piece.stop == corpus.n_tokens):
            progress(piece.stop, corpus.n_tokens)
