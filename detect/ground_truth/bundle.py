"""A ground truth as one portable file, and back (`docs/ground-truth-bundle.md`).

Texts of protected rows stay behind, and so do their ids and places in the token statistics; their
side, copies, scores and the numbers of their tokens are there. What several models share (rows,
statistics, token frequencies) is stored once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from detect.evidence import Evidence, ShadowModel
from detect.ground_truth.archive import PARQUET, Archive, read_archive, write_archive
from detect.ground_truth.ground_truth import GroundTruth, Provenance, ScoredModel, group_name
from detect.ground_truth.statistics_table import statistics_rows, statistics_table
from detect.guarded_call import read_only
from detect.token_frequency import TokenFrequency
from detect.token_statistics import TokenStatistics
from inject.errors import InputError
from inject.examples.example import Example, examples_of, examples_table

REPEATED = ("example_id", "detector", "setting")
"""Columns of the scores that hold few different texts."""


class _Frequency(BaseModel):
    """Token counts of a reference corpus."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    counts: str
    identity: dict[str, Any]


class _Model(BaseModel):
    """What the header says of one model; parts are named by their paths."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    axes: dict[str, str]
    seed: int
    model: str
    rows: str
    scores: str
    defaults: dict[str, str]
    copies: str | None
    exposures: str | None
    views: dict[str, str]
    reference: str | None
    frequency: _Frequency | None
    shadows: list[str]
    shadow_members: str | None


class _Header(BaseModel):
    """What `bundle.json` holds beside what the archive itself says."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    created: str
    provenance: Provenance
    analysis: dict[str, Any]
    experiment: str
    notes: list[str]
    models: list[_Model]


_INSIDE = frozenset(
    {"texts", "statistics", "reference", "frequency", "members", "groups", "shadows", "datasets"}
)
"""Fields of the evidence that a bundle holds, or that its rows give."""


class BundleFacts(BaseModel):
    """What a bundle says of itself."""

    model_config = ConfigDict(frozen=True)

    content: str
    """The digest that names what is inside."""
    created: str
    models: int
    rows: int
    withheld: int
    """Rows whose texts are not inside."""
    left_out: tuple[str, ...]
    """Evidence that the run has and a bundle does not hold, such as `continuations`."""


def write_bundle(path: Path, truth: GroundTruth) -> BundleFacts:
    """Write a ground truth to a file, whole or not at all.

    Raises:
        InputError: it holds rows that are withheld already: a bundle is made from a run.
    """
    if any(one.withheld.any() for one in truth.models):
        raise InputError(
            "texts are withheld here already", where=truth.name, hint="Copy the bundle instead."
        )
    parts = _Parts()
    models = [_pack(one, parts) for one in truth.models]
    left_out = tuple(
        field.name
        for field in fields(Evidence)
        if field.name not in _INSIDE
        and any(getattr(one.evidence, field.name) for one in truth.models)
    )
    notes = [f"not inside: {', '.join(left_out)}"] if left_out else []
    created = datetime.now(UTC).isoformat(timespec="seconds")
    header = _Header(
        name=truth.name,
        created=created,
        provenance=truth.provenance,
        analysis=dict(truth.analysis),
        experiment=truth.experiment,
        notes=[*truth.notes, *notes],
        models=models,
    )
    content = write_archive(path, header.model_dump(mode="json"), parts.tables)
    rows = {row.example_id: row.protected for one in truth.models for row in one.rows}
    return BundleFacts(
        content=content,
        created=created,
        models=len(models),
        rows=len(rows),
        withheld=sum(rows.values()),
        left_out=left_out,
    )


def read_bundle(path: Path) -> GroundTruth:
    """Read what `write_bundle` wrote; every byte is checked first.

    Raises:
        InputError: as `read_archive`; or a part is not what the header says.
    """
    archive = read_archive(path)
    try:
        header = _Header.model_validate(archive.header)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"its header is wrong at {place}: {first['msg']}", where=str(path)) from (
            None
        )
    parts = _OpenParts(archive)
    try:
        models = tuple(_unpack(one, parts) for one in header.models)
    except (KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise InputError(
            f"a part is not what the header says: {type(error).__name__}: {error}",
            where=str(path),
        ) from error
    return GroundTruth(
        name=header.name,
        models=models,
        analysis=header.analysis,
        experiment=header.experiment,
        provenance=header.provenance,
        notes=tuple(header.notes),
        content=archive.content,
    )


class _Parts:
    """The parts of a bundle while it is packed; what several models share is packed once."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._alive: list[object] = []

    def add(self, kind: str, thing: object, table: Any) -> str:
        """Return the name of the part that holds `thing`, made by calling `table` if need be."""
        key = (kind, id(thing))
        if key not in self._names:
            self._alive.append(thing)
            number = sum(1 for name in self.tables if name.startswith(f"{kind}/")) + 1
            self._names[key] = f"{kind}/{number:04d}{PARQUET}"
            self.tables[self._names[key]] = table()
        return self._names[key]


def _pack(one: ScoredModel, parts: _Parts) -> _Model:
    protected = np.array([row.protected for row in one.rows], dtype=np.bool_)

    def statistics(rows: Sequence[TokenStatistics]) -> str:
        return parts.add("statistics", rows, lambda: statistics_table(rows, protected))

    evidence = one.evidence
    frequency = evidence.frequency
    shadows = evidence.shadows or ()
    copies, exposures = one.copies, one.exposures
    return _Model(
        axes=dict(one.axes),
        seed=one.seed,
        model=one.model,
        rows=parts.add("rows", one.rows, lambda: _rows_table(one.rows, one.characters)),
        scores=parts.add("scores", one.scores, lambda: one.scores),
        defaults=dict(one.defaults),
        copies=None
        if copies is None
        else parts.add("copies", copies, lambda: _copies_table(copies, one.variants)),
        exposures=None
        if exposures is None
        else parts.add("exposures", exposures, lambda: exposures),
        views={name: statistics(rows) for name, rows in evidence.statistics.items()},
        reference=None if evidence.reference is None else statistics(evidence.reference),
        frequency=None
        if frequency is None
        else _Frequency(
            counts=parts.add(
                "frequency", frequency, lambda: pa.table({"count": pa.array(frequency.counts)})
            ),
            identity=dict(frequency.identity),
        ),
        shadows=[statistics(shadow.statistics) for shadow in shadows],
        shadow_members=None
        if not shadows
        else parts.add(
            "shadow_members",
            shadows,
            lambda: pa.table(
                {str(number): list(shadow.inside) for number, shadow in enumerate(shadows)}
            ),
        ),
    )


def _rows_table(rows: Sequence[Example], characters: npt.NDArray[np.int64]) -> pa.Table:
    shown = [
        replace(row, text="", fields={}, spans={}, paraphrases=()) if row.protected else row
        for row in rows
    ]
    return (
        examples_table(shown)
        .append_column("withheld", pa.array([row.protected for row in rows]))
        .append_column("characters", pa.array(characters))
    )


def _copies_table(copies: Mapping[str, int], variants: Mapping[str, str]) -> pa.Table:
    return pa.table(
        {
            "example_id": pa.array(list(copies), pa.string()),
            "copies": pa.array(list(copies.values()), pa.int64()),
            "variant": pa.array([variants.get(name) for name in copies], pa.string()),
        }
    )


class _OpenParts:
    """The parts of a bundle while it is read; what several models share is read once."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._tables: dict[str, pa.Table] = {}
        self._examples: dict[str, tuple[Example, ...]] = {}
        self._statistics: dict[str, tuple[TokenStatistics, ...]] = {}

    def table(self, name: str) -> pa.Table:
        """Return a part as a table."""
        if name not in self._tables:
            repeated = REPEATED if name.startswith("scores/") else ()
            self._tables[name] = self._archive.table(name, repeated=repeated)
        return self._tables[name]

    def examples(self, name: str) -> tuple[Example, ...]:
        """Return the rows of a part."""
        if name not in self._examples:
            self._examples[name] = tuple(examples_of(self.table(name)))
        return self._examples[name]

    def statistics(self, name: str, rows: int) -> tuple[TokenStatistics, ...]:
        """Return token statistics, one a row.

        Raises:
            InputError: there is another number of them.
        """
        where = f"{self._archive.path}: {name}"
        if name not in self._statistics:
            self._statistics[name] = tuple(statistics_rows(self.table(name), where=where))
        found = self._statistics[name]
        if len(found) != rows:
            raise InputError(f"holds {len(found)} rows, not {rows}", where=where)
        return found


def _unpack(entry: _Model, parts: _OpenParts) -> ScoredModel:
    table, rows = parts.table(entry.rows), parts.examples(entry.rows)

    def statistics(name: str) -> tuple[TokenStatistics, ...]:
        return parts.statistics(name, len(rows))

    inside = None if entry.shadow_members is None else parts.table(entry.shadow_members)
    evidence = Evidence(
        texts=[row.text for row in rows],
        statistics={name: statistics(part) for name, part in entry.views.items()},
        reference=None if entry.reference is None else statistics(entry.reference),
        frequency=None if entry.frequency is None else _frequency(entry.frequency, parts),
        members=[row.side == "member" for row in rows],
        groups=[group_name(row) for row in rows],
        shadows=None
        if inside is None
        else [
            ShadowModel(statistics=statistics(part), inside=inside[str(number)].to_pylist())
            for number, part in enumerate(entry.shadows)
        ],
    )
    copies, variants = _copies(entry.copies, parts)
    return ScoredModel(
        axes=entry.axes,
        seed=entry.seed,
        model=entry.model,
        rows=rows,
        evidence=read_only(evidence),
        withheld=np.array(table["withheld"].to_pylist(), dtype=np.bool_),
        characters=table["characters"].to_numpy(),
        scores=parts.table(entry.scores),
        defaults=entry.defaults,
        copies=copies,
        variants=variants,
        exposures=None if entry.exposures is None else parts.table(entry.exposures),
    )


def _frequency(entry: _Frequency, parts: _OpenParts) -> TokenFrequency:
    counts = parts.table(entry.counts)["count"].to_numpy()
    return TokenFrequency(counts=counts, identity=entry.identity)


def _copies(name: str | None, parts: _OpenParts) -> tuple[dict[str, int] | None, dict[str, str]]:
    if name is None:
        return None, {}
    table = parts.table(name)
    ids = table["example_id"].to_pylist()
    variants = zip(ids, table["variant"].to_pylist(), strict=True)
    return (
        dict(zip(ids, table["copies"].to_pylist(), strict=True)),
        {key: kind for key, kind in variants if kind is not None},
    )
