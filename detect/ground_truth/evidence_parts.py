"""All evidence on the rows of one model as parts of a bundle, and back.

A field of `Evidence` is a part, or several, that its entry names. Held-out rows, shots, what models
wrote and answered are there as token statistics are; of protected rows only numbers and reasons.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, TypeAdapter

from detect.choices.answers import ChoiceEvidence
from detect.evidence import Evidence, HeldOutRows, PrefixedStatistics, ShadowModel
from detect.evidence.entities import Entities
from detect.generation.continuations import ContinuationRequest
from detect.generation.guesses import GuessRequest
from detect.ground_truth.ground_truth import group_name, held_out_withheld
from detect.ground_truth.parts import OpenParts, Parts
from detect.ground_truth.row_tables import rows_of
from detect.named_entities import NamedEntity
from detect.token_frequency import TokenFrequency, WordFrequency
from detect.token_statistics import TokenStatistics
from inject.examples.example import Example

_REQUESTS: Mapping[str, TypeAdapter[Any]] = {
    "continuations": TypeAdapter(ContinuationRequest),
    "guesses": TypeAdapter(GuessRequest),
}
_ENTITY_COLUMNS = {
    "start": pa.list_(pa.int32()),
    "stop": pa.list_(pa.int32()),
    "label": pa.list_(pa.string()),
}
Mask = npt.NDArray[np.bool_]
T = TypeVar("T")


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FrequencyEntry(_Entry):
    """Token counts of a reference corpus, and counts of its words."""

    counts: str
    identity: dict[str, Any]
    words: str | None
    word_total: int


class PrefixedEntry(_Entry):
    """Token statistics behind shots."""

    statistics: str
    notes: list[str]


class HeldOutEntry(_Entry):
    """Held-out rows, and what models say of them."""

    rows: str
    statistics: str
    reference: str | None
    shadows: list[str] | None


class AskedEntry(_Entry):
    """What a model wrote or answered under one request."""

    request: dict[str, Any]
    rows: str


class EvidenceEntry(_Entry):
    """The parts that hold the evidence of one model, by field."""

    views: dict[str, str]
    reference: str | None
    frequency: FrequencyEntry | None
    shadows: list[str]
    shadow_members: str | None
    datasets: bool
    """Whether detectors were given the dataset of each row."""
    held_out: HeldOutEntry | None
    prefixed: dict[str, PrefixedEntry]
    tuned: dict[str, str]
    continuations: list[AskedEntry]
    guesses: list[AskedEntry]
    choices: str | None
    clean_choices: str | None
    """Answers about passages that no model saw, which calibrate `choices`."""
    gradients: str | None
    neighbours: str | None
    entities: str | None


def pack_evidence(evidence: Evidence, rows: Sequence[Example], parts: Parts) -> EvidenceEntry:
    """Add the evidence on rows to the parts of a bundle; return which they are.

    Args:
        evidence: on all rows.
        rows: of these, the texts of protected ones stay behind.
        parts: of the bundle.
    """
    protected = np.array([row.protected for row in rows], dtype=np.bool_)

    def statistics(found: Sequence[TokenStatistics] | None) -> str | None:
        return None if found is None else parts.statistics(found, protected)

    def by_row(kind: str, found: Sequence[Any] | None) -> str | None:
        return None if found is None else parts.rows(kind, found, protected)

    def asked(kind: str, found: Mapping[Any, Sequence[Any]]) -> list[AskedEntry]:
        plain = partial(_REQUESTS[kind].dump_python, mode="json")
        return [
            AskedEntry(request=plain(request), rows=parts.rows(kind, answers, protected))
            for request, answers in found.items()
        ]

    shadows = evidence.shadows or ()
    choices = evidence.choices
    frequency = evidence.frequency
    held_out = evidence.held_out
    return EvidenceEntry(
        views={
            name: parts.statistics(found, protected) for name, found in evidence.statistics.items()
        },
        reference=statistics(evidence.reference),
        frequency=None if frequency is None else _pack_frequency(frequency, parts),
        shadows=[parts.statistics(shadow.statistics, protected) for shadow in shadows],
        shadow_members=None
        if not shadows
        else parts.add(
            "shadow_members",
            shadows,
            lambda: pa.table(
                {str(number): list(shadow.inside) for number, shadow in enumerate(shadows)}
            ),
        ),
        datasets=evidence.datasets is not None,
        held_out=None if held_out is None else _pack_held_out(held_out, rows, protected, parts),
        prefixed={
            name: PrefixedEntry(
                statistics=parts.statistics(one.statistics, protected), notes=list(one.notes)
            )
            for name, one in evidence.prefixed.items()
        },
        tuned={name: parts.statistics(found, protected) for name, found in evidence.tuned.items()},
        continuations=asked("continuations", evidence.continuations),
        guesses=asked("guesses", evidence.guesses),
        choices=None if choices is None else by_row("choices", choices.answers),
        clean_choices=None
        if choices is None
        else parts.rows("choices", choices.clean, np.ones(len(choices.clean), dtype=np.bool_)),
        gradients=by_row("gradients", evidence.gradients),
        neighbours=by_row("neighbours", evidence.neighbours),
        entities=None
        if (found := evidence.further.get(Entities())) is None
        else parts.add("entities", found, lambda: _entities_table(found, protected)),
    )


def unpack_evidence(entry: EvidenceEntry, rows: Sequence[Example], parts: OpenParts) -> Evidence:
    """Return the evidence that `pack_evidence` packed."""
    count = len(rows)

    def statistics(name: str) -> tuple[TokenStatistics, ...]:
        return parts.statistics(name, count)

    def by_row(kind: str, name: str, number: int | None = count) -> tuple[Any, ...]:
        return rows_of(parts.table(name, number), kind, where=name)

    def asked(kind: str, entries: Sequence[AskedEntry]) -> dict[Any, tuple[Any, ...]]:
        read = _REQUESTS[kind].validate_python
        return {read(one.request): by_row(kind, one.rows) for one in entries}

    inside = None if entry.shadow_members is None else parts.table(entry.shadow_members, count)
    return Evidence(
        texts=[row.text for row in rows],
        statistics={name: statistics(part) for name, part in entry.views.items()},
        reference=_if_there(entry.reference, statistics),
        frequency=None if entry.frequency is None else _frequency(entry.frequency, parts),
        members=[row.side == "member" for row in rows],
        groups=[group_name(row) for row in rows],
        shadows=None
        if inside is None
        else [
            ShadowModel(statistics=statistics(part), inside=inside[str(number)].to_pylist())
            for number, part in enumerate(entry.shadows)
        ],
        datasets=[row.dataset for row in rows] if entry.datasets else None,
        held_out=None if entry.held_out is None else _held_out(entry.held_out, parts),
        prefixed={
            name: PrefixedStatistics(statistics=statistics(one.statistics), notes=tuple(one.notes))
            for name, one in entry.prefixed.items()
        },
        tuned={name: statistics(part) for name, part in entry.tuned.items()},
        continuations=asked("continuations", entry.continuations),
        guesses=asked("guesses", entry.guesses),
        choices=None
        if entry.choices is None
        else ChoiceEvidence(
            answers=by_row("choices", entry.choices),
            clean=()
            if entry.clean_choices is None
            else by_row("choices", entry.clean_choices, None),
        ),
        gradients=_if_there(entry.gradients, partial(by_row, "gradients")),
        neighbours=_if_there(entry.neighbours, partial(by_row, "neighbours")),
        further={}
        if entry.entities is None
        else {Entities(): _entities(parts.table(entry.entities, count))},
    )


def _pack_frequency(frequency: TokenFrequency, parts: Parts) -> FrequencyEntry:
    words = frequency.words
    return FrequencyEntry(
        counts=parts.add(
            "frequency", frequency, lambda: pa.table({"count": pa.array(frequency.counts)})
        ),
        identity=dict(frequency.identity),
        words=None
        if words is None
        else parts.add(
            "words",
            words,
            lambda: pa.table(
                {
                    "word": pa.array(list(words.counts), pa.string()),
                    "count": pa.array(list(words.counts.values()), pa.int64()),
                }
            ),
        ),
        word_total=0 if words is None else words.total,
    )


def _frequency(entry: FrequencyEntry, parts: OpenParts) -> TokenFrequency:
    words = None if entry.words is None else parts.table(entry.words)
    return TokenFrequency(
        counts=parts.table(entry.counts)["count"].to_numpy(),
        identity=entry.identity,
        words=None
        if words is None
        else WordFrequency(
            counts=dict(zip(words["word"].to_pylist(), words["count"].to_pylist(), strict=True)),
            total=entry.word_total,
        ),
    )


def _pack_held_out(
    held_out: HeldOutRows, rows: Sequence[Example], protected: Mask, parts: Parts
) -> HeldOutEntry:
    withheld = held_out_withheld(held_out.datasets, rows, protected)

    def statistics(found: Sequence[TokenStatistics]) -> str:
        return parts.statistics(found, withheld)

    return HeldOutEntry(
        rows=parts.add(
            "held_out",
            held_out.texts,
            lambda: pa.table(
                {
                    "dataset": pa.array(list(held_out.datasets), pa.string()),
                    "text": pa.array(
                        [
                            "" if gone else text
                            for text, gone in zip(held_out.texts, withheld, strict=True)
                        ],
                        pa.string(),
                    ),
                    "withheld": pa.array(withheld),
                }
            ),
        ),
        statistics=statistics(held_out.statistics),
        reference=None if held_out.reference is None else statistics(held_out.reference),
        shadows=None
        if held_out.shadows is None
        else [statistics(found) for found in held_out.shadows],
    )


def _held_out(entry: HeldOutEntry, parts: OpenParts) -> HeldOutRows:
    table = parts.table(entry.rows)

    def statistics(name: str) -> tuple[TokenStatistics, ...]:
        return parts.statistics(name, len(table))

    return HeldOutRows(
        datasets=table["dataset"].to_pylist(),
        texts=table["text"].to_pylist(),
        statistics=statistics(entry.statistics),
        reference=_if_there(entry.reference, statistics),
        shadows=None if entry.shadows is None else [statistics(name) for name in entry.shadows],
    )


def _entities_table(rows: Sequence[Sequence[NamedEntity]], withheld: Mask) -> pa.Table:
    """Return the named entities of each text; none of a protected one, whose words they show."""
    shown = [() if gone else row for row, gone in zip(rows, withheld, strict=True)]
    return pa.table(
        {
            name: pa.array([[getattr(one, name) for one in row] for row in shown], column)
            for name, column in _ENTITY_COLUMNS.items()
        }
    )


def _entities(table: pa.Table) -> list[list[NamedEntity]]:
    columns = [table[name].to_pylist() for name in _ENTITY_COLUMNS]
    return [
        [NamedEntity(*one) for one in zip(*row, strict=True)] for row in zip(*columns, strict=True)
    ]


def _if_there(name: str | None, read: Callable[[str], T]) -> T | None:
    return None if name is None else read(name)
