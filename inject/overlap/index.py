"""Which examples a document overlaps with, and in which words.

The index has all examples that could become members or non-members, answers that are long enough by
themselves, and nothing of the background: memory is bounded by the examples. A document costs one
pass over its words for each of its readings, and a comparison wherever hashes agree.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

from inject.corpus.background.document import Document
from inject.digest import text_digest
from inject.examples.example import Example
from inject.keyed import I64
from inject.overlap.hashes import Prefixes, RollingHash, Vocabulary
from inject.overlap.near_duplicates import NearDuplicateIndex
from inject.overlap.ngrams import NgramIndex, Pattern
from inject.overlap.settings import SHORTEST, OverlapSettings
from inject.words import WORD_WEIGHT, WordSpan, places, readings, weight

NGRAM, NEAR = "n-gram", "near-duplicate"
_SHOWN_WORDS = 60


@dataclass(frozen=True, kw_only=True)
class UncheckableExample:
    """An example with too few words to be looked for."""

    example_id: str
    dataset: str
    source_id: str
    words: float
    """Its number of words; a character of a script without spaces counts as a share of one."""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """One document and one example that share more than they may."""

    rule: str
    """`n-gram` or `near-duplicate`."""
    example_id: str
    dataset: str
    part: str
    """Part of the example with the shared words (question, passage, answer …), or `text`."""
    words: int
    """Words in a row that are shared (characters, in scripts without spaces); for a
    near-duplicate, words of the document's span."""
    similarity: float
    """Share of the example's n-grams in the document, or Jaccard similarity of 3-grams."""
    place: str
    """The document: name of its file and row."""
    source: int
    """Position of its source in the mixture."""
    document: str
    """First 16 hex digits of the SHA-256 of the document's text."""
    text: str | None
    """The shared words as the document has them (the first of them, if they are many); None if the
    example is protected."""


class _Stretch(NamedTuple):
    """Units of a document that an example also has."""

    rule: str
    example: Example
    part: str
    start: int
    """First unit in the document."""
    length: int
    similarity: float


class OverlapIndex:
    """All examples, ready to be compared with documents.

    Args:
        examples: whose texts must not occur in the background.
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
                    UncheckableExample(
                        example_id=example.example_id,
                        dataset=example.dataset,
                        source_id=example.source_id,
                        words=heaviest / WORD_WEIGHT,
                    )
                )
        whole = [self._pattern(index, number, 0, words) for index, number, words in numbered]
        parts = [part for pattern in whole for part in self._answers(pattern, settings.ngram)]
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
                [pattern.prefixes for pattern in whole], settings.near_duplicate, self._hasher
            )
            if settings.near_duplicate is not None
            else None
        )

    @property
    def examples(self) -> int:
        """The number of examples."""
        return len(self._examples)

    def overlaps(self, document: Document) -> list[Overlap]:
        """Return the offences of a document: one a rule and example, in the examples' order."""
        worst: dict[tuple[str, str, str], Overlap] = {}
        for reading, units in enumerate(readings(document.text)):
            words = self._vocabulary.known(units)
            prefixes = self._prefixes(words)
            stretches = [*self._by_ngrams(words, prefixes), *self._by_likeness(prefixes)]
            unit_places = places(document.text, reading) if stretches else []
            for stretch in stretches:
                overlap = _overlap(document, unit_places, stretch)
                name = overlap.rule, overlap.dataset, overlap.example_id
                if name not in worst or _size(overlap) > _size(worst[name]):
                    worst[name] = overlap
        return [worst[name] for name in sorted(worst)]

    def _by_ngrams(self, words: I64, prefixes: Prefixes) -> Iterator[_Stretch]:
        for shared in self._ngrams.shared(words, prefixes) if self._ngrams else ():
            if self.settings.share is not None and shared.share < self.settings.share:
                continue
            example = self._examples[shared.example]
            part = _part(example, shared.reading, shared.example_start, shared.length)
            yield _Stretch(NGRAM, example, part, shared.document_start, shared.length, shared.share)

    def _by_likeness(self, prefixes: Prefixes) -> Iterator[_Stretch]:
        for number, start, stop, similarity in self._near.find(prefixes) if self._near else ():
            example = self._examples[self._whole[number].example]
            yield _Stretch(NEAR, example, "text", start, stop - start, similarity)

    def _prefixes(self, words: I64) -> Prefixes:
        return self._hasher.prefixes(words, self._vocabulary.weights(words))

    def _pattern(self, index: int, reading: int, first: int, words: I64) -> Pattern:
        return Pattern(index, reading, first, words, self._prefixes(words))

    def _answers(self, whole: Pattern, size: int | None) -> list[Pattern]:
        """Return the answer as a separate pattern if the example's runs might miss it.

        An answer shorter than a run only occurs in runs with other words.
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


def _size(overlap: Overlap) -> tuple[int, float]:
    """Return the sort key by which one offence of an example and rule outweighs another."""
    return overlap.words if overlap.rule == NGRAM else 0, overlap.similarity


def _part(example: Example, reading: int, first: int, length: int) -> str:
    """Return the part of the example with most of the units first … first+length."""
    unit_places = places(example.text, reading)
    low, high = unit_places[first].start, unit_places[first + length - 1].stop
    best, most = "text", 0
    for name, span in example.spans.items():
        inside = min(high, span.stop) - max(low, span.start)
        if inside > most:
            best, most = name, inside
    return best


def _overlap(document: Document, unit_places: Sequence[WordSpan], stretch: _Stretch) -> Overlap:
    """Describe an offence of a document, whose units have the places `unit_places`."""
    example, text = stretch.example, None
    if not example.protected:
        last = stretch.start + min(stretch.length, _SHOWN_WORDS) - 1
        text = document.text[unit_places[stretch.start].start : unit_places[last].stop]
        text += " …" if stretch.length > _SHOWN_WORDS else ""
    return Overlap(
        rule=stretch.rule,
        example_id=example.example_id,
        dataset=example.dataset,
        part=stretch.part,
        words=stretch.length,
        similarity=round(stretch.similarity, 4),
        # The folder is this machine's own business, and must not enter an artifact.
        place=PurePath(document.place).name,
        source=document.source,
        document=text_digest(document.text)[:16],
        text=text,
    )
