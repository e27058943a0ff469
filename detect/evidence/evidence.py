"""Input of detectors: texts, and the evidence that meets their needs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from detect.choices import ChoiceEvidence
from detect.generation.continuations import ContinuationRequest, Continued
from detect.generation.guesses import GuessedText, GuessRequest
from detect.text_measures import GradientNorms, NeighbourMeans
from detect.token_frequency import TokenFrequency
from detect.token_statistics import TokenStatistics
from detect.views import TEXT

SHARED = frozenset({"frequency", "held_out"})
"""Fields of `Evidence` without one entry per row."""


@dataclass(frozen=True, kw_only=True)
class ShadowModel:
    """One model like the target that saw a random half of the examples."""

    statistics: Sequence[TokenStatistics]
    """Statistics of the text, one entry per row."""
    inside: Sequence[bool]
    """Whether the model saw each row."""


@dataclass(frozen=True, kw_only=True)
class HeldOutRows:
    """Unseen rows that are not scored; sequences have one entry per row, in one order."""

    datasets: Sequence[str]
    texts: Sequence[str]
    statistics: Sequence[TokenStatistics]
    """Statistics of the text under the target."""
    reference: Sequence[TokenStatistics] | None = None
    """Statistics under the reference model."""
    shadows: Sequence[Sequence[TokenStatistics]] | None = None
    """Statistics under each shadow model, in the order of `Evidence.shadows`; none saw these
    rows."""

    def of(self, dataset: str) -> list[int]:
        """Return the indices of a dataset's rows."""
        return [place for place, name in enumerate(self.datasets) if name == dataset]


@dataclass(frozen=True, kw_only=True)
class PrefixedStatistics:
    """Token statistics of the scored texts after shots of their own dataset."""

    statistics: Sequence[TokenStatistics]
    """Statistics of the text's own tokens, as in its plain pass; one entry per row."""
    notes: tuple[str, ...] = ()
    """Notes on datasets with fewer shots than requested, with the reason."""


@dataclass(frozen=True, kw_only=True)
class ExampleEvidence:
    """The evidence on one example."""

    text: str
    statistics: Mapping[str, TokenStatistics]
    """By view."""
    reference: TokenStatistics | None
    frequency: TokenFrequency | None
    neighbours: NeighbourMeans | None = None
    """Means over texts with one token exchanged."""
    prefixed: Mapping[str, TokenStatistics] = field(default_factory=dict)
    """After shots, by `detect.evidence.needs.Prefixed.name`."""
    tuned: Mapping[str, TokenStatistics] = field(default_factory=dict)
    """Under the target tuned on held-out rows, by `detect.evidence.needs.Tuned.name`."""
    continuations: Mapping[ContinuationRequest, Continued] = field(default_factory=dict)
    """Texts that the target wrote after the beginning of the text, by request."""
    guesses: Mapping[GuessRequest, GuessedText] = field(default_factory=dict)
    """The target's answers for masked parts of the text, by request."""
    further: Mapping[Any, Any] = field(default_factory=dict)
    """Evidence of needs without a separate field, by need."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence on all examples; sequences have one entry per row, in one order."""

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
    """The dataset of each row, if there are held-out rows, which belong to datasets."""
    held_out: HeldOutRows | None = None
    prefixed: Mapping[str, PrefixedStatistics] = field(default_factory=dict)
    """By `detect.evidence.needs.Prefixed.name`."""
    tuned: Mapping[str, Sequence[TokenStatistics]] = field(default_factory=dict)
    """Under the target tuned on held-out rows, by `detect.evidence.needs.Tuned.name`."""
    continuations: Mapping[ContinuationRequest, Sequence[Continued]] = field(default_factory=dict)
    """Texts that the target wrote after the beginnings of the texts, by request."""
    guesses: Mapping[GuessRequest, Sequence[GuessedText]] = field(default_factory=dict)
    """The target's answers for masked parts of the texts, by request."""
    choices: ChoiceEvidence | None = None
    """Answers to multiple-choice questions."""
    gradients: Sequence[GradientNorms] | None = None
    """Gradient norms of each text's loss under the target."""
    neighbours: Sequence[NeighbourMeans] | None = None
    """For each text: how likely the target finds texts with one token exchanged."""
    further: Mapping[Any, Sequence[Any]] = field(default_factory=dict)
    """Evidence of needs without a separate field, by need: one entry per row."""

    def of_held_out(self) -> "Evidence":
        """Return the evidence on the held-out rows, for scores by detectors of token tables.

        Their scores calibrate those of the examples (`analysis.decisions.flagged`).

        Raises:
            ValueError: if there are none.
        """
        held_out = self.held_out
        if held_out is None:
            raise ValueError("there are no held-out rows")
        return Evidence(
            texts=held_out.texts,
            statistics={TEXT: held_out.statistics},
            reference=held_out.reference,
            frequency=self.frequency,
            datasets=held_out.datasets,
        )

    def examples(self) -> Iterator[ExampleEvidence]:
        """Yield the evidence on each example."""
        views = self.statistics
        # If no view may be read, reading one of the empty mapping raises (`detect.access`).
        none = cast(Mapping[str, TokenStatistics], views)
        for row, text in enumerate(self.texts):
            yield ExampleEvidence(
                text=text,
                statistics={name: rows[row] for name, rows in views.items()} if views else none,
                reference=self.reference[row] if self.reference is not None else None,
                frequency=self.frequency,
                neighbours=self.neighbours[row] if self.neighbours is not None else None,
                prefixed={name: part.statistics[row] for name, part in self.prefixed.items()},
                tuned={name: rows[row] for name, rows in self.tuned.items()},
                continuations={request: rows[row] for request, rows in self.continuations.items()},
                guesses={request: rows[row] for request, rows in self.guesses.items()},
                further={need: rows[row] for need, rows in self.further.items()},
            )

    def take(self, rows: Sequence[int]) -> "Evidence":
        """Return the evidence on some rows, in the order given."""
        parts = {
            part.name: _take_rows(getattr(self, part.name), rows)
            for part in fields(self)
            if part.name not in SHARED
        }
        return replace(self, **parts)


_BY_ROW: Mapping[type[Any], tuple[str, ...]] = {
    ShadowModel: ("statistics", "inside"),
    PrefixedStatistics: ("statistics",),
    ChoiceEvidence: ("answers",),
}
"""The by-row fields of a part of the evidence."""


def _take_rows(value: Any, rows: Sequence[int]) -> Any:
    """Return the entries of some rows, also within a mapping or a part."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {key: _take_rows(entry, rows) for key, entry in value.items()}
    if type(value) in _BY_ROW:
        names = _BY_ROW[type(value)]
        return replace(value, **{name: _take_rows(getattr(value, name), rows) for name in names})
    if value and type(value[0]) in _BY_ROW:
        return tuple(_take_rows(entry, rows) for entry in value)
    return tuple(value[row] for row in rows)
