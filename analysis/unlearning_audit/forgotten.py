"""The audit of one unlearned model of an experiment: each forgotten text is one chunk.

Scores and continuations were made by other steps. All forgotten texts are continued by all models,
so nothing is weighted. Texts that cannot be divided, or of which no copy was fed, are left out.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.copy_bins import ALL
from analysis.intervals.estimate import Estimate
from analysis.unlearning_audit.audit_tables import (
    Audit,
    Scored,
    chunk_table,
    compared,
    without_protected,
)
from analysis.unlearning_audit.checks import Evidence, Weights, judge
from analysis.unlearning_audit.estimates import Clusters, clusters_of, null, share
from analysis.unlearning_audit.findings import Findings, Ratioed, find, shares
from analysis.unlearning_audit.ratio import Band, Floats, Ratios, score_ratios
from analysis.unlearning_audit.remembered import Sampled
from analysis.unlearning_audit.text_chunks import Chunk
from detect.generation.continuations import Continued
from inject.examples.example import Example

SCHEMA = [
    ("method", pa.string()),
    ("copies", pa.string()),
    ("quantity", pa.string()),
    ("value", pa.float64()),
    ("low", pa.float64()),
    ("high", pa.float64()),
    ("chunks", pa.int64()),
    ("seeds", pa.int64()),
    ("note", pa.string()),
]
"""Columns of `unlearning_audits.parquet` behind the sweep's axes and the seed."""


HOLDOUT_FILE = "holdout.parquet"
HOLDOUT = [
    ("text_id", pa.string()),
    ("group", pa.string()),
    ("ratio", pa.float64()),
    ("suspicious", pa.bool_()),
]
"""Columns of `holdout.parquet`."""


class AuditedModel(NamedTuple):
    """What one audit reads, by model: original, unlearned, retrained."""

    scores: Mapping[str, Mapping[str, float]]
    """By example_id; NaN where there is none."""
    losses: Mapping[str, Mapping[str, float]]
    """Mean log-probabilities of the same texts; empty where the experiment does not score them."""
    continued: Mapping[str, Mapping[str, Continued]]
    """By example_id."""


def audit_forgotten(
    rows: Sequence[Example],
    others: Sequence[Example],
    given: AuditedModel,
    *,
    band: Band,
    rate: float,
) -> Audit:
    """Return the audit of one unlearned model.

    Args:
        rows: the forgotten examples.
        others: the non-members, which are the control texts.
        given: what each model scored and wrote.
        band: of suspicious ratios.
        rate: of false alarms, that the calibrated band is to have.
    """
    chunks, left_out = _chunks(rows, given)
    ids = [chunk.text_id for chunk in chunks]
    scores = {
        name: np.array([own[one] for one in ids], dtype=np.float64)
        for name, own in given.scores.items()
    }
    ratios = score_ratios(scores["original"], scores["unlearned"])
    retrained = score_ratios(scores["original"], scores["retrained"], name="retrained")
    tables = [
        compared(name, chunks, [given.continued[name][one].texts for one in ids])
        for name in given.continued
    ]
    continuations = pa.concat_tables(tables).combine_chunks()
    flags = band.holds(ratios.values)
    places = tuple(range(len(chunks)))
    found = find(
        Ratioed(chunks, ratios.values, retrained.values),
        None,
        continuations,
        band=band,
        rate=rate,
        sampled=Sampled(places, np.ones(len(chunks)), 0),
    )
    losses = _losses(given, ids)
    judgement = judge(
        Evidence(
            audited=losses,
            clusters=clusters_of(chunks),
            control=_losses(given, [row.example_id for row in others]) if others else {},
            control_clusters=Clusters(tuple(row.group for row in others)),
            guessing=math.inf,
            weights=Weights(False, math.nan, "the experiment trained it from the original"),
        ),
        found,
    )
    notes: tuple[str, ...] = ()
    if left_out:
        notes = (f"{left_out:,} texts are too short to be divided, and are left out",)
    return Audit(
        chunks=chunks,
        chunk_table=chunk_table(
            chunks,
            Scored(scores, losses, ratios, retrained, flags),
            found.written,
            audited=len(chunks),
            continued={*places},
        ),
        continuations=without_protected(continuations, chunks),
        questions=None,
        findings=found,
        question_findings=None,
        judgement=judgement,
        notes=notes,
    )


def holdout_table(
    rows: Sequence[Example], scores: Mapping[str, Mapping[str, float]], band: Band
) -> pa.Table:
    """Return the texts that no model saw as `HOLDOUT`: what the rule says of the unlearned model.

    Args:
        rows: the non-members.
        scores: by model and example_id.
        band: of suspicious ratios.
    """
    ids = [row.example_id for row in rows]
    values = {
        name: np.array([scores[name][one] for one in ids], dtype=np.float64)
        for name in ("original", "unlearned")
    }
    ratios: Ratios = score_ratios(values["original"], values["unlearned"])
    columns = {
        "text_id": ids,
        "group": [row.group for row in rows],
        "ratio": [null(value) for value in ratios.values],
        "suspicious": band.holds(ratios.values).tolist(),
    }
    return pa.Table.from_pydict(columns, schema=pa.schema(HOLDOUT))


def flagged_holdout(table: pa.Table) -> Estimate:
    """Return the share of the texts that no model saw which the rule flags.

    Args:
        table: from `holdout_table`.
    """
    rows = [row for row in table.to_pylist() if row["ratio"] is not None]
    clusters = Clusters(tuple(row["group"] for row in rows))
    return share([float(row["suspicious"]) for row in rows], clusters)


def audit_rows(
    method: str, found: Findings, holdout: Estimate, chunks: int
) -> list[dict[str, object]]:
    """Return the numbers of an audit as rows of `SCHEMA`."""
    quantities = {**shares(found), "flagged_holdout": holdout}
    return [
        {
            "method": method,
            "copies": ALL,
            "quantity": name,
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "chunks": chunks,
            "seeds": 1,
            "note": "; ".join(said for said in (one.reason, one.caution) if said),
        }
        for name, one in quantities.items()
    ]


def _losses(given: AuditedModel, ids: Sequence[str]) -> dict[str, Floats]:
    return {
        name: -np.array([own[one] for one in ids], dtype=np.float64)
        for name, own in given.losses.items()
    }


def _chunks(rows: Sequence[Example], given: AuditedModel) -> tuple[list[Chunk], int]:
    chunks: list[Chunk] = []
    for row in rows:
        written = given.continued["unlearned"][row.example_id]
        if written.reason is not None:
            continue
        chunks.append(
            Chunk(
                chunk=len(chunks),
                text_id=row.example_id,
                group=row.group,
                start=0,
                stop=len(row.text),
                text=row.text,
                prompt_stop=len(written.beginning),
                protected=row.protected,
            )
        )
    return chunks, len(rows) - len(chunks)
