"""Which examples a document overlaps with, and in which words.

The index holds all examples that could become members or non-members, answers that are long
enough on their own, and nothing of the background: memory is bounded by the examples. A document
costs one pass over its words for each of its readings, and a comparison wherever hashes agree.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from inject.corpus.background.document import Document
from inject.examples.example import Example
from inject.overlap.hashes import Prefixes, RollingHash, Vocabulary
from inject.overlap.near_duplicates import NearDuplicateIndex
from inject.overlap.ngrams import NgramIndex, Pattern
from inject.overlap.settings import SHORTEST, OverlapSettings
from inject.words import WORD_WEIGHT, Place, places, readings, weight

I64 = npt.NDArray[np.int64]

NGRAM, NEAR = "n-gram", "near-duplicate"
_SHOWN_WORDS = 60


@dataclass(frozen=True, kw_only=True)
class Unchecked:
    """An example with too few words to be looked for."""

    example_id: str
    dataset: str
    source_id: str
    words: float
    """How many it has; a character of a script without spaces counts as a share of one."""


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
    """Words in a row that are shared (characters, in scripts without spaces); for a
    near-duplicate, words of the document's stretch."""
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
        max_owners: of a run that more examples have, only the first so many are found by it; None
            finds all.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        settings: OverlapSettings,
        *,
        max_owners: int | None = None,
    ) -> None:
        self.settings = settings
        self._examples = examples
        self._vocabulary = Vocabulary()
        self._hasher = RollingHash()
        numbered: list[tuple[int, int, I64]] = []
        unchecked = []
        least = min(SHORTEST, settings.ngram or SHORTEST) * WORD_WEIGHT
        for index, example in enumerate(examples):
            read = readings(example.text)
            numbered += [
                (index, number, self._vocabulary.add(units)) for number, units in enumerate(read)
            ]
            heaviest = max(sum(map(weight, units)) for units in read)
            if heaviest < least:
                unchecked.append(
                    Unchecked(
                        example_id=example.example_id,
                        dataset=example.dataset,
                        source_id=example.source_id,
                        words=heaviest / WORD_WEIGHT,
                    )
                )
        whole = [self._pattern(index, number, 0, words) for index, number, words in numbered]
        parts = [part for one in whole for part in self._answers(one, settings.ngram)]
        self.unchecked = tuple(unchecked)
        """Examples with too few words to be looked for."""
        self._whole = whole
        self._ngrams = (
            NgramIndex([*whole, *parts], settings.ngram, self._hasher, max_owners=max_owners)
            if settings.ngram is not None
            else None
        )
        self._near = (
            NearDuplicateIndex(
                [one.prefixes for one in whole], settings.near_duplicate, self._hasher
            )
            if settings.near_duplicate is not None
            else None
        )

    @property
    def examples(self) -> int:
        """How many examples there are."""
        return len(self._examples)

    def overlaps(self, document: Document) -> list[Overlap]:
        """Return the offences of a document: one a rule and example, in the examples' order."""
        found: dict[tuple[str, str, str], Overlap] = {}
        for reading, units in enumerate(readings(document.text)):
            words = self._vocabulary.known(units)
            prefixes = self._prefixes(words)
            shown = _Shown(document, reading)
            for one in (
                *self._by_ngrams(shown, words, prefixes),
                *self._by_likeness(shown, prefixes),
            ):
                name = one.rule, one.dataset, one.example_id
                if name not in found or _size(one) > _size(found[name]):
                    found[name] = one
        return [found[name] for name in sorted(found)]

    def _by_ngrams(self, shown: "_Shown", words: I64, prefixes: Prefixes) -> Iterator[Overlap]:
        if self._ngrams is None:
            return
        for shared in self._ngrams.shared(words, prefixes):
            if self.settings.share is not None and shared.share < self.settings.share:
                continue
            example = self._examples[shared.example]
            yield shown.overlap(
                NGRAM,
                example,
                part=_part(example, shared.reading, shared.example_start, shared.length),
                start=shared.document_start,
                length=shared.length,
                similarity=shared.share,
            )

    def _by_likeness(self, shown: "_Shown", prefixes: Prefixes) -> Iterator[Overlap]:
        if self._near is None:
            return
        for near in self._near.find(prefixes):
            yield shown.overlap(
                NEAR,
                self._examples[self._whole[near.example].example],
                part="text",
                start=near.start,
                length=near.stop - near.start,
                similarity=near.similarity,
            )

    def _prefixes(self, words: I64) -> Prefixes:
        return self._hasher.prefixes(words, self._vocabulary.weights(words))

    def _pattern(self, index: int, reading: int, first: int, words: I64) -> Pattern:
        return Pattern(index, reading, first, words, self._prefixes(words))

    def _answers(self, whole: Pattern, size: int | None) -> list[Pattern]:
        """Return the answer as a pattern of its own, where the example's runs might miss it.

        An answer shorter than a run is part of runs with other words alone.
        """
        example = self._examples[whole.example]
        span = example.spans.get("answer")
        if span is None or size is None:
            return []
        inside = [
            number
            for number, place in enumerate(places(example.text, whole.reading))
            if span.start <= place.start and place.stop <= span.stop
        ]
        if not inside:
            return []
        first, stop = inside[0], inside[-1] + 1
        weights = self._vocabulary.weights(whole.words)
        heavy = (stop - first) * WORD_WEIGHT if weights is None else int(weights[first:stop].sum())
        if not SHORTEST * WORD_WEIGHT <= heavy < size * WORD_WEIGHT:
            return []
        return [self._pattern(whole.example, whole.reading, first, whole.words[first:stop])]


def _size(one: Overlap) -> tuple[int, float]:
    """Return what makes one offence of an example and rule more telling than another."""
    return (one.words, one.similarity) if one.rule == NGRAM else (0, one.similarity)


def _part(example: Example, reading: int, first: int, length: int) -> str:
    """Return the part of the example that holds most of the units first … first+length."""
    where = places(example.text, reading)
    low, high = where[first].start, where[first + length - 1].stop
    best, most = "text", 0
    for name, span in example.spans.items():
        inside = min(high, span.stop) - max(low, span.start)
        if inside > most:
            best, most = name, inside
    return best


class _Shown:
    """A document in one of its readings, as offences show it."""

    def __init__(self, document: Document, reading: int) -> None:
        self._document = document
        self._reading = reading

    @cached_property
    def _places(self) -> list[Place]:
        return places(self._document.text, self._reading)

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self._document.text.encode()).hexdigest()[:16]

    def overlap(
        self,
        rule: str,
        example: Example,
        *,
        part: str,
        start: int,
        length: int,
        similarity: float,
    ) -> Overlap:
        """Describe an offence: the units start … start+length of the document."""
        text = None
        if not example.protected:
            last = start + min(length, _SHOWN_WORDS) - 1
            text = self._document.text[self._places[start].start : self._places[last].stop]
            text += " …" if length > _SHOWN_WORDS else ""
        return Overlap(
            rule=rule,
            example_id=example.example_id,
            dataset=example.dataset,
            part=part,
            words=length,
            similarity=round(similarity, 4),
            # The folder is this machine's own business, and must not enter an artifact.
            place=PurePath(self._document.place).name,
            source=self._document.source,
            document=self._digest,
            text=text,
        )
