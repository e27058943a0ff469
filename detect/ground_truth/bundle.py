"""A ground truth as one portable file, and back (`docs/ground-truth-bundle.md`).

Texts of protected rows stay behind, what models wrote after them, and their ids and places in the
token statistics; their side, copies, scores and the numbers of their tokens are there. All evidence
that detectors were given is inside (`evidence_parts`); what several models share (rows, statistics,
token frequencies) is stored once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from detect.ground_truth.archive import read_archive, write_archive
from detect.ground_truth.evidence_parts import EvidenceEntry, pack_evidence, unpack_evidence
from detect.ground_truth.ground_truth import GroundTruth, Provenance, ScoredModel
from detect.ground_truth.parts import OpenParts, Parts
from detect.guarded_call import read_only
from inject.errors import InputError
from inject.examples.example import Example, examples_table


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
    fixed_levels: bool
    exposures: str | None
    evidence: EvidenceEntry


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


def write_bundle(path: Path, truth: GroundTruth) -> BundleFacts:
    """Write a ground truth to a file, whole or not at all.

    Raises:
        InputError: it holds rows that are withheld already: a bundle is made from a run.
    """
    if any(one.withheld.any() for one in truth.models):
        raise InputError(
            "texts are withheld here already", where=truth.name, hint="Copy the bundle instead."
        )
    parts = Parts()
    models = [_pack(one, parts) for one in truth.models]
    created = datetime.now(UTC).isoformat(timespec="seconds")
    header = _Header(
        name=truth.name,
        created=created,
        provenance=truth.provenance,
        analysis=dict(truth.analysis),
        experiment=truth.experiment,
        notes=list(truth.notes),
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
    parts = OpenParts(archive)
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


def _pack(one: ScoredModel, parts: Parts) -> _Model:
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
        fixed_levels=one.fixed_levels,
        exposures=None
        if exposures is None
        else parts.add("exposures", exposures, lambda: exposures),
        evidence=pack_evidence(one.evidence, one.rows, parts),
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


def _unpack(entry: _Model, parts: OpenParts) -> ScoredModel:
    table, rows = parts.table(entry.rows), parts.examples(entry.rows)
    copies, variants = _copies(entry.copies, parts)
    return ScoredModel(
        axes=entry.axes,
        seed=entry.seed,
        model=entry.model,
        rows=rows,
        evidence=read_only(unpack_evidence(entry.evidence, rows, parts)),
        withheld=np.array(table["withheld"].to_pylist(), dtype=np.bool_),
        characters=table["characters"].to_numpy(),
        scores=parts.table(entry.scores),
        defaults=entry.defaults,
        copies=copies,
        variants=variants,
        fixed_levels=entry.fixed_levels,
        exposures=None if entry.exposures is None else parts.table(entry.exposures),
    )


def _copies(name: str | None, parts: OpenParts) -> tuple[dict[str, int] | None, dict[str, str]]:
    if name is None:
        return None, {}
    table = parts.table(name)
    ids = table["example_id"].to_pylist()
    variants = zip(ids, table["variant"].to_pylist(), strict=True)
    return (
        dict(zip(ids, table["copies"].to_pylist(), strict=True)),
        {key: kind for key, kind in variants if kind is not None},
    )
