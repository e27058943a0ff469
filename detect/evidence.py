"""What detectors are given: texts, and whatever was made to meet their needs (`detect.needs`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from detect.generation.continuations import ContinuationRequest, Continued
from detect.generation.guesses import GuessedText, GuessRequest
from detect.token_frequency import TokenFrequency
from detect.token_statistics import TokenStatistics


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
    continuations: Mapping[ContinuationRequest, Continued] = field(default_factory=dict)
    """What the target wrote after the beginning of the text, by what it was asked."""
    guesses: Mapping[GuessRequest, GuessedText] = field(default_factory=dict)
    """What the target answered for masked parts of the text, by what it was asked."""


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
    continuations: Mapping[ContinuationRequest, Sequence[Continued]] = field(default_factory=dict)
    """What the target wrote after the beginnings of the texts, by what it was asked."""
    guesses: Mapping[GuessRequest, Sequence[GuessedText]] = field(default_factory=dict)
    """What the target answered for masked parts of the texts, by what it was asked."""

    def examples(self) -> Iterator[ExampleEvidence]:
        """Yield what is known of each example."""
        views = self.statistics
        # Where no view may be read, the empty mapping says so to who reads one (`detect.access`).
        none = cast(Mapping[str, TokenStatistics], views)
        for row, text in enumerate(self.texts):
            yield ExampleEvidence(
                text=text,
                statistics={name: rows[row] for name, rows in views.items()} if views else none,
                reference=self.reference[row] if self.reference is not None else None,
                frequency=self.frequency,
                continuations={asked: rows[row] for asked, rows in self.continuations.items()},
                guesses={asked: rows[row] for asked, rows in self.guesses.items()},
            )
