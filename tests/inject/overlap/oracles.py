"""Overlaps by brute force, and texts with known overlaps."""

import re

import numpy as np

from inject.example import Example, Span, example_id

SHORTEST = 8


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def runs(words: list[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}


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
    there = words_of(document)
    found = set()
    for index, text in enumerate(texts):
        words = words_of(text)
        length = min(size, len(words))
        if len(words) < min(SHORTEST, size):
            continue
        wanted = [tuple(words[start : start + length]) for start in range(len(words) - length + 1)]
        held = runs(there, length)
        hits = sum(run in held for run in wanted)
        if hits and (share is None or hits / len(wanted) >= share):
            found.add(index)
    return found


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


def jaccard(first: str, second: str) -> float:
    one, other = runs(words_of(first), 3), runs(words_of(second), 3)
    return len(one & other) / len(one | other)
