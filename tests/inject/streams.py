"""Small streams and brute-force oracles for the tests of the ground truth."""

from dataclasses import dataclass, field

import numpy as np

from inject.corpus.separators import Separators, end_separators
from inject.examples.example import Example
from inject.plan.make_plan import PlanSettings, make_plan
from inject.plan.settings import Copies, Placement

END = 0
START = 99
LINE = (97, 98)


@dataclass
class ArraySource:
    """A clean corpus in an array."""

    tokens: np.ndarray
    doc_starts: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @property
    def n_tokens(self) -> int:
        return len(self.tokens)

    def read(self, start: int, stop: int) -> np.ndarray:
        assert 0 <= start <= stop <= len(self.tokens)
        return self.tokens[start:stop].astype(np.int64)


def random_source(n_tokens: int, *, seed: int, vocabulary: int = 50, documents: int = 20):
    """A corpus of small ids whose documents end with the token 0.

    Examples of `spiked_examples` use ids that never occur in it.
    """
    random = np.random.default_rng(seed)
    starts = np.unique(np.append(0, random.integers(1, n_tokens, documents)))
    tokens = random.integers(1, vocabulary, n_tokens)
    tokens[starts[1:] - 1] = END
    return ArraySource(tokens, starts.astype(np.int64))


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


def separators_of(placement):
    """The separators of a placement in the ids of these streams."""
    kind = placement.separated_by
    if kind == "blank_line":
        return Separators(kind, np.array(LINE), np.array(LINE))
    if kind == "none":
        return Separators(kind, np.zeros(0, dtype=int), np.zeros(0, dtype=int))
    return end_separators(
        END,
        start=START if kind == "start_end" else None,
        document=placement.policy == "document",
    )


def plan_for(examples, tokens, placement=None, *, source, copies=None, candidates=None, **more):
    """A plan over a whole source, unless `more` changes its settings."""
    placement = placement or Placement()
    values = {"budget": source.n_tokens, "context": 64, "seed": 0, **more}
    return make_plan(
        examples,
        tokens,
        PlanSettings(copies=copies or Copies(poisson=2), placement=placement, **values),
        source=source,
        separators=separators_of(placement),
        vocabulary=60_000,
        candidates=candidates,
    )


def whole_texts(tokens):
    """The texts that copies carry when there are no variants."""
    return {(name, "whole"): ids for name, ids in tokens.items()}


def naive_stream(source, insertions, budget: int, *, window: int | None = None) -> np.ndarray:
    """Compose a contaminated stream token by token, with Python lists.

    With `window`, payloads shift their own window only.
    """
    clean = source.tokens.tolist()
    at: dict[int, list[tuple[int, int]]] = {}
    for index, anchor in enumerate(insertions.anchor.tolist()):
        at.setdefault(anchor, []).append((int(insertions.tiebreak[index]), index))
    if window is None:
        out = _composed(clean, at, insertions, 0, budget)
    else:
        out = []
        for start in range(0, budget, window):
            out += _composed(clean, at, insertions, start, min(window, budget - start))
    assert not at
    return np.array(out, dtype=np.int64)


def _composed(clean, at, insertions, start: int, size: int) -> list[int]:
    """`size` tokens: the clean ones from `start` on, each after the payloads before it."""
    out: list[int] = []
    position = start
    while len(out) < size:
        for _, index in sorted(at.pop(position, [])):
            offset, length = int(insertions.offset[index]), int(insertions.length[index])
            out.extend(int(token) for token in insertions.payload[offset : offset + length])
        if len(out) < size:
            out.append(clean[position])
        position += 1
    return out[:size]


def naive_find(haystack: np.ndarray, needle: np.ndarray) -> list[int]:
    """All positions of a pattern, by sliding it along."""
    text, pattern = haystack.tolist(), needle.tolist()
    return [
        start
        for start in range(len(text) - len(pattern) + 1)
        if text[start : start + len(pattern)] == pattern
    ]


def chisquare(*counts):
    """scipy's test; the import takes a second, which collecting the tests need not pay."""
    from scipy import stats

    return stats.chisquare(*counts)
