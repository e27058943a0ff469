"""What the page of an audit by chunks shows: plain values, made by whoever made the audit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from typing import NamedTuple

MODELS = ("original", "unlearned", "retrained")
"""In the order of the page; any other name stands behind them."""


class Fact(NamedTuple):
    """One line of the page's head."""

    name: str
    value: str
    """As it is shown: a rate with its interval, a setting, a path."""
    about: str = ""
    """What to know of it, in small letters: a caution, a count."""


@dataclass(frozen=True, kw_only=True)
class ChunkContinuation:
    """One model's continuation of a chunk: of its samples, the one closest to the truth."""

    model: str
    text: str
    similarities: Mapping[str, float] = field(default_factory=dict)
    """By the name of the measure, such as `ROUGE-L`."""


@dataclass(frozen=True, kw_only=True)
class ChunkRow:
    """One chunk."""

    chunk: str
    """What it is called, shown even where its text is not."""
    suspicion: float
    """Larger is more suspicious; NaN where it could not be judged."""
    suspicious: bool
    """Whether the rule flags it."""
    ratio: float = nan
    """Of the unlearned model's score to the original's; NaN where there is none."""
    similarity: float = nan
    """Of the unlearned model's closest continuation to the truth; NaN where there is none."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Of the detector, by model."""
    context: str = ""
    """What the models were given: the beginning of the chunk."""
    truth: str = ""
    """How it goes on."""
    continuations: tuple[ChunkContinuation, ...] = ()
    """One a model at most."""
    show_text: bool = True
    """Whether its licence lets its texts be shown; a model's continuation counts as its text."""


@dataclass(frozen=True, kw_only=True)
class ChunkPage:
    """A page."""

    title: str
    sentences: tuple[str, ...]
    """What the audit found, above everything else."""
    facts: tuple[Fact, ...]
    rows: tuple[ChunkRow, ...]
    detector: str
    """Whose scores are shown, such as `Min-K% Prob, k = 20 %`."""
    similarity: str = "ROUGE-L"
    """The measure by which continuations are closest."""
    notes: tuple[str, ...] = ()
    """What to know before reading on."""
    show_texts: bool = True
    """False shows ids and numbers alone, whatever a row says."""

    def models(self) -> list[str]:
        """Return the models that any row has a score or a continuation of, in the page's order."""
        found = dict.fromkeys(
            name
            for row in self.rows
            for name in (*row.scores, *(one.model for one in row.continuations))
        )
        return [*(name for name in MODELS if name in found), *(n for n in found if n not in MODELS)]

    def shows(self, row: ChunkRow) -> bool:
        """Return whether a row's texts are shown."""
        return self.show_texts and row.show_text and bool(row.truth or row.context)
