"""Weighted mixture of sources: one endless-looking, deterministic order of documents.

A finite source is read whole and put in the order of a keyed hash of the content (so neither
file names nor the order of rows matter); a stream keeps its order. Texts seen before are
dropped. Shares are of UTF-8 bytes. The next document comes from a source that is not ahead of
its share, the one whose share its next document would be due first: at any moment no source
lacks more than one document (the largest) of its share, and asking for more documents never
changes the earlier ones.

Memory: the texts of finite sources, 2 GiB at most for one source (then an `InputError`), and
32 bytes for each document seen. Cost: about 5 µs a document beyond reading it.
"""

import hashlib
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from inject.corpus.background.document import Document, Skipped
from inject.errors import InputError
from inject.keyed import Stream, words

if TYPE_CHECKING:
    from inject.corpus.background.registry import AnySource

HELD_BYTES = 2 << 30
_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class SourceReport:
    """The counts drawn from one source so far."""

    source: str
    """The source's label, with the path as the user wrote it."""
    weight: float
    documents: int = 0
    bytes: int = 0
    """UTF-8 bytes of the documents drawn."""
    duplicates: int = 0
    """Documents dropped because their exact text had been drawn before."""
    empty: int = 0
    """Rows without text, skipped by the source."""
    dropped: int = 0
    """Rejected documents (they overlap with an example); they count in no share."""
    exhausted: bool = False
    """Whether the source is exhausted; the others then share the requested amount."""


def report_values(report: Sequence[SourceReport]) -> list[dict[str, Any]]:
    """Return a report as JSON values, without labels, which name folders of this machine."""
    return [
        {name: value for name, value in asdict(source).items() if name != "source"}
        for source in report
    ]


class _Text(NamedTuple):
    encoded: bytes
    fingerprint: bytes
    place: str

    def document(self, source: int) -> Document:
        """Return it as a document of the source at that position."""
        return Document(self.encoded.decode(), self.place, source)


class _SourceQueue:
    """The documents still to come of one source, with the next one in view."""

    def __init__(self, source: "AnySource", report: SourceReport, seed: int) -> None:
        self.report = report
        self._skipped = Skipped()
        texts = (_text(document) for document in source.documents(self._skipped))
        self._texts = _keyed_order(texts, source.label(), seed) if source.finite else texts
        self.next: _Text | None = None
        self.wanted = False
        """Whether the current document was requested and may be drawn."""
        self.advance()

    def advance(self) -> None:
        """Bring the next document into view; None once the source has given out."""
        self.next = next(self._texts, None)
        self.wanted = False
        self.report.empty = self._skipped.empty


def mixed_documents(
    sources: Sequence["AnySource"],
    *,
    seed: int,
    report: list[SourceReport] | None = None,
    keep: Callable[[Document], bool] | None = None,
) -> Iterator[Document]:
    """Yield the documents of all sources in one order that depends only on content and seed.

    Args:
        sources: at least one; their order decides ties and `Document.source`.
        seed: the experiment's seed.
        report: filled while the documents are drawn, by source.
        keep: called once for each document about to be drawn; rejected ones are skipped.

    Raises:
        InputError: as the sources; a text that is not valid Unicode; a finite source of more
            than 2 GiB.
    """
    report = report if report is not None else []
    report[:] = [SourceReport(source=source.label(), weight=source.weight) for source in sources]
    shares = _whole_numbers([source.weight for source in sources])
    coming = [_SourceQueue(source, own, seed) for source, own in zip(sources, report, strict=True)]
    seen: set[bytes] = set()
    while True:
        ready: list[tuple[int, int, _Text]] = []
        for index, item in enumerate(coming):
            while item.next is not None:
                if item.next.fingerprint in seen:
                    item.report.duplicates += 1
                elif item.wanted or keep is None or keep(item.next.document(index)):
                    item.wanted = True
                    break
                else:
                    item.report.dropped += 1
                item.advance()
            if item.next is not None:
                ready.append((index, item.report.bytes, item.next))
            elif not item.report.exhausted:
                item.report.exhausted = True
                if ready or any(later.next for later in coming[index + 1 :]):
                    _log.warning(
                        "background: %s is exhausted after %d documents (%d bytes); the other "
                        "sources continue without it",
                        item.report.source,
                        item.report.documents,
                        item.report.bytes,
                    )
        if not ready:
            return
        index, text = _choose(ready, shares)
        seen.add(text.fingerprint)
        coming[index].report.documents += 1
        coming[index].report.bytes += len(text.encoded)
        coming[index].advance()
        yield text.document(index)


def _choose(ready: Sequence[tuple[int, int, _Text]], shares: Sequence[int]) -> tuple[int, _Text]:
    """Choose among sources that are not ahead the one whose next document is due first.

    With T bytes drawn in all, a source with share w (of W) is ahead when it has drawn more
    than T·w/W; its next document is due when T·w/W reaches what it has drawn with that
    document. This is worst-case fair queueing (WF2Q; Bennett and Zhang, INFOCOM 1996), which
    keeps every source within one document of its share. Whole numbers, so no rounding.
    """
    total_bytes = sum(drawn_bytes for _, drawn_bytes, _ in ready)
    total_share = sum(shares[index] for index, _, _ in ready)
    waiting = [
        (Fraction(drawn_bytes + len(text.encoded), shares[index]), index, text)
        for index, drawn_bytes, text in ready
        if drawn_bytes * total_share <= total_bytes * shares[index]
    ]
    _, index, text = min(waiting, key=lambda entry: entry[:2])
    return index, text


def _whole_numbers(weights: Sequence[float]) -> list[int]:
    """Scale weights to whole numbers in exactly the same proportions."""
    exact = [Fraction(weight) for weight in weights]
    scale = math.lcm(*(weight.denominator for weight in exact))
    return [int(weight * scale) for weight in exact]


def _text(document: Document) -> _Text:
    try:
        encoded = document.text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            "background: half a surrogate pair, not valid text", where=document.place
        ) from error
    return _Text(encoded, hashlib.sha256(encoded).digest(), document.place)


def _keyed_order(texts: Iterator[_Text], label: str, seed: int) -> Iterator[_Text]:
    """Yield all texts of a finite source by a keyed 64-bit hash of the content."""
    source_texts: list[_Text] = []
    total = 0
    for text in texts:
        total += len(text.encoded)
        if total > HELD_BYTES:
            raise InputError(
                f"more than {HELD_BYTES >> 20} MiB of text, and it is ordered in memory",
                where=f"background: {label}",
                hint="Name fewer files, or give the data as several sources.",
            )
        source_texts.append(text)
    items = [int.from_bytes(text.fingerprint[:8], "little") for text in source_texts]
    keys = words(seed, Stream.DOCUMENT_ORDER, np.array(items, dtype=np.uint64))
    order = sorted(
        range(len(source_texts)), key=lambda place: (keys[place], source_texts[place].fingerprint)
    )
    source_texts = [source_texts[place] for place in order]
    source_texts.reverse()
    while source_texts:
        yield source_texts.pop()
