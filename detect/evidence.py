"""What detectors are given, what they declare, and what they return.

A detector names its needs; the engine collects the union over all detectors asked for and makes
each pass once. Scores: higher always means 'more likely a member'; where a detector cannot
score it gives NaN and a reason.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import update_wrapper
from typing import Any, NamedTuple

from detect.token_frequency import TokenFrequency
from detect.token_statistics import TokenStatistics
from detect.views import TEXT
from inject.settings import Settings

EMPTY_SELECTION = "empty selection"


@dataclass(frozen=True)
class View:
    """Token statistics of a view under the target."""

    name: str

    def __str__(self) -> str:
        return f"view {self.name}"


@dataclass(frozen=True)
class Reference:
    """Token statistics of the text under a reference model with its own tokenizer."""

    def __str__(self) -> str:
        return "reference model"


@dataclass(frozen=True)
class Frequency:
    """Token counts of a reference corpus under the target's tokenizer."""

    def __str__(self) -> str:
        return "token frequencies"


@dataclass(frozen=True)
class Sides:
    """Which examples are members, and their groups; for detectors that are trained."""

    def __str__(self) -> str:
        return "labels"


@dataclass(frozen=True)
class Shadows:
    """Token statistics of the text under shadow models, of which it is known who saw whom."""

    def __str__(self) -> str:
        return "shadow models"


Need = View | Reference | Frequency | Sides | Shadows


class Score(NamedTuple):
    """One score, or NaN and why."""

    value: float
    reason: str | None = None


class Column(NamedTuple):
    """One setting's scores of all examples, and what is to be told about them."""

    scores: list[Score]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShadowModel:
    """One model like the target that saw a random half of the examples."""

    statistics: Sequence[TokenStatistics]
    """Of the text, one a row."""
    inside: Sequence[bool]
    """Whether it saw the row."""


@dataclass(frozen=True, kw_only=True)
class ExampleEvidence:
    """What is known of one example."""

    text: str
    statistics: Mapping[str, TokenStatistics]
    """By view."""
    reference: TokenStatistics | None
    frequency: TokenFrequency | None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known of all examples; sequences have one entry a row, in one order."""

    texts: Sequence[str]
    statistics: Mapping[str, Sequence[TokenStatistics]]
    """By view, under the target."""
    reference: Sequence[TokenStatistics] | None = None
    frequency: TokenFrequency | None = None
    members: Sequence[bool] | None = None
    groups: Sequence[str] | None = None
    """Rows of one group share a passage; None: each text is its own group."""
    shadows: Sequence[ShadowModel] | None = None

    def examples(self) -> Iterator[ExampleEvidence]:
        """Yield what is known of each example."""
        for row, text in enumerate(self.texts):
            yield ExampleEvidence(
                text=text,
                statistics={name: rows[row] for name, rows in self.statistics.items()},
                reference=self.reference[row] if self.reference is not None else None,
                frequency=self.frequency,
            )

    def has(self, need: Need) -> bool:
        """Return whether this need is met."""
        match need:
            case View(name):
                return name in self.statistics
            case Reference():
                return self.reference is not None
            case Frequency():
                return self.frequency is not None
            case Sides():
                return self.members is not None
            case Shadows():
                return self.shadows is not None


class NoParameters(Settings):
    """The detector has no parameters."""


@dataclass(frozen=True, kw_only=True)
class Detector:
    """A detector: what it is, what it needs, and how it scores.

    `score` returns one column for each of the settings given, so that a grid costs one pass.
    """

    name: str
    summary: str
    source: str
    """Paper and equation."""
    needs: tuple[Need, ...]
    parameters: type[Settings] = NoParameters
    """Its defaults are the paper's."""
    grid: tuple[Settings, ...] = ()
    """The settings to choose from on `tune`."""
    score: Callable[[Evidence, Sequence[Any]], list[Column]]


Example = Callable[[ExampleEvidence, Sequence[Any]], list[Score]]
Note = Callable[[Evidence, Any], str | None]


def each_example(
    score: Example, note: Note | None = None
) -> Callable[[Evidence, Sequence[Any]], list[Column]]:
    """Return a detector's `score` from one that scores a single example under all settings.

    Statistics of the text (`text` view) that hold nothing pass their reason on.
    """

    def score_all(evidence: Evidence, settings: Sequence[Any]) -> list[Column]:
        rows = []
        for example in evidence.examples():
            text = example.statistics.get(TEXT)
            if text is not None and not len(text):
                rows.append([Score(math.nan, text.reason)] * len(settings))
            else:
                found = score(example, settings)
                if not isinstance(found, list | tuple) or len(found) != len(settings):
                    raise TypeError(
                        f"{_described(found)} returned for {len(settings)} settings of one example"
                    )
                rows.append(list(found))
        columns = []
        for index, setting in enumerate(settings):
            told = note(evidence, setting) if note else None
            columns.append(Column([row[index] for row in rows], (told,) if told else ()))
        return columns

    # Whoever asks where a detector comes from is led to the function that was written for it.
    return update_wrapper(score_all, score)


def one_score(
    function: Callable[[ExampleEvidence], float | str], note: Note | None = None
) -> Callable[[Evidence, Sequence[Any]], list[Column]]:
    """Return `score` of a detector without parameters; a text returned is a reason."""

    def score(example: ExampleEvidence, settings: Sequence[Any]) -> list[Score]:
        value = function(example)
        found = Score(math.nan, value) if isinstance(value, str) else Score(value)
        return [found] * len(settings)

    return each_example(update_wrapper(score, function), note)


def _described(found: Any) -> str:
    if found is None:
        return "nothing"
    return f"{len(found)} scores" if isinstance(found, list | tuple) else type(found).__name__


def whole(count: int, share: Fraction) -> int:
    """Return floor(count · share), exactly: 0.29 of 100 is 29."""
    return math.floor(count * share)
