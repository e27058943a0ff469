"""What detectors are given: texts, and whatever was made to meet their needs (`detect.needs`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from detect.choices.answers import ChoiceEvidence
from detect.generation.continuations import ContinuationRequest, Continued
from detect.generation.guesses import GuessedText, GuessRequest
from detect.gradients.norms import GradientNorms
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
class HeldOutRows:
    """Rows that no model saw and nobody scores; sequences have one entry a row, in one order."""

    datasets: Sequence[str]
    texts: Sequence[str]
    statistics: Sequence[TokenStatistics]
    """Of the text under the target."""
    reference: Sequence[TokenStatistics] | None = None
    """Under the reference model."""
    shadows: Sequence[Sequence[TokenStatistics]] | None = None
    """Under each shadow model, in the order of `Evidence.shadows`; none of them saw a row."""

    def of(self, dataset: str) -> list[int]:
        """Return the places of a dataset's rows."""
        return [place for place, name in enumerate(self.datasets) if name == dataset]


@dataclass(frozen=True, kw_only=True)
class PrefixedStatistics:
    """Token statistics of the scored texts behind shots of their own dataset."""

    statistics: Sequence[TokenStatistics]
    """Of the text's own tokens, one entry a row: those of its plain pass."""
    notes: tuple[str, ...] = ()
    """Where fewer shots stand before the texts than were asked for, and why."""


@dataclass(frozen=True, kw_only=True)
class ExampleEvidence:
    """What is known of one example."""

    text: str
    statistics: Mapping[str, TokenStatistics]
    """By view."""
    reference: TokenStatistics | None
    frequency: TokenFrequency | None
    prefixed: Mapping[str, TokenStatistics] = field(default_factory=dict)
    """Behind shots, by `detect.needs.Prefixed.name`."""
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
    datasets: Sequence[str] | None = None
    """The dataset of each row, where held-out rows are there, which belong to datasets."""
    held_out: HeldOutRows | None = None
    prefixed: Mapping[str, PrefixedStatistics] = field(default_factory=dict)
    """By `detect.needs.Prefixed.name`."""
    continuations: Mapping[ContinuationRequest, Sequence[Continued]] = field(default_factory=dict)
    """What the target wrote after the beginnings of the texts, by what it was asked."""
    guesses: Mapping[GuessRequest, Sequence[GuessedText]] = field(default_factory=dict)
    """What the target answered for masked parts of the texts, by what it was asked."""
    choices: ChoiceEvidence | None = None
    """Answers to multiple-choice questions."""
    gradients: Sequence[GradientNorms] | None = None
    """Of the loss of each text under the target."""

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
                prefixed={name: one.statistics[row] for name, one in self.prefixed.items()},
                continuations={asked: rows[row] for asked, rows in self.continuations.items()},
                guesses={asked: rows[row] for asked, rows in self.guesses.items()},
            )
