"""Small streams and brute-force oracles for the tests of the ground truth."""

from dataclasses import dataclass, field

import numpy as np

from inject.example import Example


@dataclass
class ArraySource:
    """A clean corpus held in an array."""

    tokens: np.ndarray
    doc_starts: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @property
    def n_tokens(self) -> int:
        return len(self.tokens)

    def read(self, start: int, stop: int) -> np.ndarray:
        assert 0 <= start <= stop <= len(self.tokens)
        return self.tokens[start:stop].astype(np.int64)


def random_source(n_tokens: int, *, seed: int, vocabulary: int = 50, documents: int = 20):
    """A corpus of small ids; examples of `spiked_examples` use ids that never occur in it."""
    random = np.random.default_rng(seed)
    starts = np.unique(np.append(0, random.integers(1, n_tokens, documents)))
    return ArraySource(random.integers(1, vocabulary, n_tokens), starts.astype(np.int64))


def spiked_examples(members: int, nonmembers: int, *, dataset: str = "toy", seed: int = 0):
    """Examples with distinct token ids above 100, and their tokens by id."""
    random = np.random.default_rng([seed, len(dataset), *dataset.encode()])
    examples, tokens = [], {}
    for index in range(members + nonmembers):
        name = f"{dataset}-{index}"
        examples.append(
            Example(
                example_id=name,
                dataset=dataset,
                source_id=str(index),
                group=name,
                text=name,
                side="member" if index < members else "nonmember",
                split="tune" if index % 4 == 0 else "test",
            )
        )
        tokens[name] = random.integers(100, 60_000, int(random.integers(2, 30)))
    return examples, tokens


def naive_stream(source, insertions, budget: int) -> np.ndarray:
    """Compose a contaminated stream token by token, with Python lists."""
    clean = source.tokens.tolist()
    at: dict[int, list[tuple[int, int]]] = {}
    for index, anchor in enumerate(insertions.anchor.tolist()):
        at.setdefault(anchor, []).append((int(insertions.tiebreak[index]), index))
    out: list[int] = []
    position = 0
    while len(out) < budget:
        for _, index in sorted(at.pop(position, [])):
            offset, length = int(insertions.offset[index]), int(insertions.length[index])
            out.extend(int(token) for token in insertions.payload[offset : offset + length])
        if len(out) < budget:
            out.append(clean[position])
        position += 1
    assert not at
    return np.array(out[:budget], dtype=np.int64)


def naive_find(haystack: np.ndarray, needle: np.ndarray) -> list[int]:
    """All positions of a pattern, by sliding it along."""
    text, pattern = haystack.tolist(), needle.tolist()
    return [
        start
        for start in range(len(text) - len(pattern) + 1)
        if text[start : start + len(pattern)] == pattern
    ]
