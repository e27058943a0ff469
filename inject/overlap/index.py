"""Which examples a document overlaps with, and in which words.

The index holds all examples that could become members or non-members, answers that are long
enough on their own, and nothing of the background: memory is bounded by the examples. A document
costs one pass over its words (20 MB/s and more), and a comparison wherever hashes agree.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from inject.background.document import Document
from inject.example import Example
from inject.overlap.ngrams import NgramIndex, Pattern
from inject.overlap.settings import SHORTEST, OverlapSettings
from inject.overlap.words import WORD, Prefixes, RollingHash, Vocabulary

I64 = npt.NDArray[np.int64]

NGRAM, NEAR = "n-gram", "near-duplicate"
_SHOWN_WORDS = 60


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """One document and one example that share more than they may."""

    rule: str
    """`n-gram` or `near-duplicate`."""
    example_id: str
    dataset: str
    part: str
    """Part of the example that the shared words lie in (question, passage, answer …), or `text`."""
    words: int
    """Words in a row that are shared; for a near-duplicate, words of the document's stretch."""
    similarity: float
    """Share of the example's n-grams in the document, or Jaccard similarity of 3-grams."""
    place: str
    """The document: name of its file and row."""
    source: int
    """Position of its source in the mixture."""
    document: str
    """First 16 hex digits of the SHA-256 of the document's text."""
    text: str | None
    """The shared words as the document has them (the first of them, where they are many); None
    where the example is protected."""


class OverlapIndex:
    """All examples, ready to be compared with documents.

    Args:
        examples: whose texts must not stand in the background.
        settings: the rules.
    """

    def __init__(self, examples: Sequence[Example], settings: OverlapSettings) -> None:
        self.settings = settings
        self._examples = examples
        self._vocabulary = Vocabulary()
        self._hasher = hasher = RollingHash()
        words = [self._vocabulary.add(example.text) for example in examples]
        self._patterns = [Pattern(index, 0, found) for index, found in enumerate(words)]
        self._patterns += [
            pattern
            for index, example in enumerate(examples)
            for pattern in _answers(example, index, words[index], settings.ngram)
        ]
        self._ngrams = (
            NgramIndex(self._patterns, settings.ngram, hasher)
            if settings.ngram is not None
            else None
        )
        self._near = None
        if settings.near_duplicate is not None:
            # datasketch takes a while to import, which a run without this rule need not pay.
            from inject.overlap.nearly import NearIndex

            self._near = NearIndex(words, settings.near_duplicate, hasher)
        shortest = min(SHORTEST, settings.ngram or SHORTEST)
        self.unchecked = sum(len(found) < shortest for found in words)
        """Examples with too few words to be looked for."""

    @property
    def examples(self) -> int:
        """How many examples there are."""
        return len(self._examples)

    def overlaps(self, document: Document) -> list[Overlap]:
        """Return the offences of a document: one a rule and example, in the examples' order."""
        words = self._vocabulary.known(document.text)
        prefixes = self._hasher.prefixes(words)
        found = [
            *self._by_ngrams(document, words, prefixes),
            *self._by_likeness(document, prefixes),
        ]
        return sorted(found, key=lambda one: (one.rule, one.dataset, one.example_id))

    def _by_ngrams(self, document: Document, words: I64, prefixes: Prefixes) -> Iterator[Overlap]:
        if self._ngrams is None:
            return
        for shared in self._ngrams.shared(words, prefixes):
            if self.settings.share is not None and shared.share < self.settings.share:
                continue
            example = self._examples[shared.example]
            yield _overlap(
                NGRAM,
                example,
                document,
                part=_part(example, shared.example_start, shared.length),
                start=shared.document_start,
                length=shared.length,
                similarity=shared.share,
            )

    def _by_likeness(self, document: Document, prefixes: Prefixes) -> Iterator[Overlap]:
        if self._near is None:
            return
        for near in self._near.near(prefixes):
            yield _overlap(
                NEAR,
                self._examples[near.example],
                document,
                part="text",
                start=near.start,
                length=near.stop - near.start,
                similarity=near.similarity,
            )


def _answers(example: Example, index: int, words: I64, size: int | None) -> list[Pattern]:
    """Return the answer as a pattern of its own, where the example's runs might miss it.

    An answer shorter than a run is part of runs with other words alone.
    """
    span = example.spans.get("answer")
    if span is None or size is None:
        return []
    before = len(WORD.findall(example.text[: span.start].lower()))
    count = len(WORD.findall(example.text[span.start : span.stop].lower()))
    if not SHORTEST <= count < size:
        return []
    return [Pattern(index, before, words[before : before + count])]


def _part(example: Example, first: int, length: int) -> str:
    """Return the part of the example that holds most of the words first … first+length."""
    places = [match.span() for match in WORD.finditer(example.text.lower())]
    low, high = places[first][0], places[first + length - 1][1]
    best, most = "text", 0
    for name, span in example.spans.items():
        inside = min(high, span.stop) - max(low, span.start)
        if inside > most:
            best, most = name, inside
    return best


def _overlap(
    rule: str,
    example: Example,
    document: Document,
    *,
    part: str,
    start: int,
    length: int,
    similarity: float,
) -> Overlap:
    text = None
    if not example.protected:
        # Lower case can be longer than the text itself, in rare alphabets; words stay in order.
        places = list(WORD.finditer(document.text))
        last = min(start + min(length, _SHOWN_WORDS), len(places)) - 1
        text = document.text[places[min(start, last)].start() : places[last].end()]
        text += " …" if length > _SHOWN_WORDS else ""
    return Overlap(
        rule=rule,
        example_id=example.example_id,
        dataset=example.dataset,
        part=part,
        words=length,
        similarity=round(similarity, 4),
        # The folder is this machine's own business, and must not enter an artifact.
        place=PurePath(document.place).name,
        source=document.source,
        document=hashlib.sha256(document.text.encode()).hexdigest()[:16],
        text=text,
    )
