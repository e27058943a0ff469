"""What detectors are given: texts, and whatever was made to meet their needs (`detect.needs`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from detect.token_frequency import TokenFrequency
from detect.token_statistics import TokenStatistics

SHARED = frozenset({"frequency"})
"""Fields of `Evidence` that are not by row."""


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

    def take(self, rows: Sequence[int]) -> "Evidence":
        """Return the evidence on some rows, in the order given."""
        parts = {
            one.name: _taken(getattr(self, one.name), rows)
            for one in fields(self)
            if one.name not in SHARED
        }
        return replace(self, **parts)


def _taken(value: Any, rows: Sequence[int]) -> Any:
    """Return the entries of some rows; of a mapping or a shadow model, of all that it holds."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {key: _taken(one, rows) for key, one in value.items()}
    if isinstance(value, ShadowModel):
        return replace(
            value, **{one.name: _taken(getattr(value, one.name), rows) for one in fields(value)}
        )
    if value and isinstance(value[0], ShadowModel):
        return tuple(_taken(one, rows) for one in value)
    return tuple(value[row] for row in rows)
