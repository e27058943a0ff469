"""Overlaps by brute force, and texts with known overlaps."""

import re
import unicodedata

import numpy as np

from inject.examples.example import Example, Span, example_id

SHORTEST = 8


TENTHS = {"CJK": 7, "HIRAGANA": 4, "KATAKANA": 4, "MYANMAR": 4, "THAI": 3, "LAO": 3, "KHMER": 3}
"""A character's weight in tenths of a word, by the first word of its name; others form words."""


def words_of(text: str) -> list[str]:
    """Words of letters, digits and marks; characters of scripts without spaces are single words."""
    units: list[str] = []
    inside = False
    for sign in unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()):
        kind = unicodedata.category(sign)
        if kind[0] == "M":
            if inside:
                units[-1] += sign
            else:
                units.append(sign)
            inside = True
        elif kind[0] not in "LN":
            inside = False
        elif kind[0] == "L" and tenths(sign) < 10:
            units.append(sign)
            inside = True
        elif inside and tenths(units[-1]) == 10:
            units[-1] += sign
        else:
            units.append(sign)
            inside = True
    return units


def tenths(unit: str) -> int:
    """The weight of a unit in words."""
    if unicodedata.category(unit[0])[0] != "L":
        return 10
    return TENTHS.get(unicodedata.name(unit[0], "").split()[0], 10)


def runs(words: list[str], size: int) -> set[tuple[str, ...]]:
    return set(all_runs(words, 10 * size))


def all_runs(units: list[str], heavy: int) -> list[tuple[str, ...]]:
    """The shortest run of at least that weight from each unit, if there is one."""
    ngrams = []
    for start in range(len(units)):
        for stop in range(start + 1, len(units) + 1):
            if sum(map(tenths, units[start:stop])) >= heavy:
                ngrams.append(tuple(units[start:stop]))
                break
    return ngrams


def make_example(text: str, *, dataset: str = "toy", protected: bool = False, **spans) -> Example:
    return Example(
        example_id=example_id(text),
        dataset=dataset,
        source_id=text[:10],
        group=example_id(text),
        text=text,
        spans={name: Span(*span) for name, span in spans.items()},
        protected=protected,
    )


def naive_offences(texts: list[str], document: str, size: int, share: float | None) -> set[int]:
    """Indices of the texts that share a run of words with the document."""
    document_words = words_of(document)
    offenders = set()
    for index, text in enumerate(texts):
        words = words_of(text)
        heavy = min(10 * size, sum(map(tenths, words)))
        if heavy < 10 * min(SHORTEST, size):
            continue
        example_runs = all_runs(words, heavy)
        document_runs = set(all_runs(document_words, heavy))
        hits = sum(run in document_runs for run in example_runs)
        if hits and (share is None or hits / len(example_runs) >= share):
            offenders.add(index)
    return offenders


def lightly_edited(text: str, random: np.random.Generator) -> str:
    """One word in ten to fifteen is replaced, dropped or doubled by another."""
    words = text.split()
    position = int(random.integers(3, 9))
    while position < len(words):
        kind = int(random.integers(3))
        if kind == 0:
            words[position] = "otherwise"
        elif kind == 1:
            del words[position]
        else:
            words.insert(position, "indeed")
        position += int(random.integers(10, 16))
    return " ".join(words)


def reordered(text: str, random: np.random.Generator) -> str:
    """The sentences in another order."""
    sentences = re.split(r"(?<=[.!?])\s+", text)
    order = random.permutation(len(sentences))
    if (order == np.arange(len(sentences))).all():
        order = order[::-1]
    return " ".join(sentences[index] for index in order)


def best_jaccard(text: str, document: str) -> float:
    """The greatest similarity of a text with any span that shares six 3-grams with it."""
    example_runs = runs(words_of(text), 3)
    document_runs = all_runs(words_of(document), 30)
    best = 0.0
    for start in range(len(document_runs)):
        for stop in range(start + 1, len(document_runs) + 1):
            window = set(document_runs[start:stop])
            if len(example_runs & window) >= 6:
                best = max(best, len(example_runs & window) / len(example_runs | window))
    return best
