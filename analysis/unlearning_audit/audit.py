"""An audit as tables: chunks, continuations and findings, from what models scored and wrote."""

from collections.abc import Mapping
from math import isfinite, isnan
from typing import Any, NamedTuple

import pyarrow as pa

from analysis.copy_bins import ALL
from analysis.intervals.estimate import Estimate
from analysis.unit import Unit
from analysis.unlearning_audit.checks import QUESTIONS, Judgement, Weights, judge
from analysis.unlearning_audit.evidence import Chunks
from analysis.unlearning_audit.findings import Findings, find, likeness, question_findings
from analysis.unlearning_audit.ratio import Band
from analysis.unlearning_audit.text_chunks import (
    AUDITED,
    HOLDOUT,
    QUESTION,
    RETAINED,
    prompt_of,
    rest_of,
)

AUDITS = "unlearning_audits"
"""The question of the findings."""
AUDIT_FILE = "unlearning_audit.json"
CHUNKS_FILE = "chunks.parquet"
_PLACE = ("start", "stop", "prompt_stop")
_SHARE = Unit("%", 1, 100.0)
CHUNKS = pa.schema(
    [
        ("chunk", pa.int64()),
        ("part", pa.string()),
        ("text_id", pa.string()),
        ("group", pa.string()),
        ("start", pa.int64()),
        ("stop", pa.int64()),
        ("prompt_stop", pa.int64()),
        ("original", pa.float64()),
        ("unlearned", pa.float64()),
        ("retrained", pa.float64()),
        ("ratio", pa.float64()),
        ("retrained_ratio", pa.float64()),
        ("suspicious", pa.bool_()),
        ("continued", pa.bool_()),
        ("remembered", pa.bool_()),
        ("remembered_original", pa.bool_()),
        ("loss_original", pa.float64()),
        ("loss_unlearned", pa.float64()),
        ("loss_retrained", pa.float64()),
        ("reason", pa.string()),
        ("copies", pa.int64()),
        ("prompt", pa.string()),
        ("truth", pa.string()),
    ]
)


class Audit(NamedTuple):
    """What an audit found."""

    chunks: pa.Table
    """As `CHUNKS`."""
    findings: Findings
    estimates: dict[str, Estimate]
    """Every number of the table of findings, by its quantity."""
    judgement: Judgement


def audit_chunks(
    chunks: Chunks,
    weights: Weights,
    *,
    band: Band,
    rate: float,
    guessing: float,
    copies: Mapping[str, int],
) -> Audit:
    """Return the audit of one unlearned model.

    Args:
        chunks: of all parts: those that are audited, those of texts that no model saw, those that
            the unlearned model should still know, and questions.
        weights: how they lie to the original's.
        band: of suspicious ratios.
        rate: of false alarms, that the calibrated band is to have.
        guessing: loss of guessing tokens by their frequency; infinite if it is unknown.
        copies: that the original saw, by text; empty where nobody knows.
    """
    parts = {name: chunks.part(name) for name in (AUDITED, HOLDOUT, RETAINED, QUESTION)}
    audited = parts[AUDITED]
    findings = find(audited, parts[HOLDOUT], band=band, rate=rate)
    judgement = judge(parts, weights, findings, guessing=guessing)
    return Audit(
        _chunk_table(chunks, audited, findings, band, copies),
        findings,
        {
            **findings.shares,
            **{name: judgement.checks[name].measure for name in QUESTIONS},
            **likeness(audited, band.flags(audited.ratios["unlearned"])),
            **question_findings(parts[QUESTION], band),
        },
        judgement,
    )


def without_protected(chunks: Chunks) -> pa.Table:
    """Return continuations, their text null where the chunk is protected: it may be that text."""
    table = chunks.continuations
    texts = [
        None if chunks.rows[row["chunk"]].protected else row["text"]
        for row in table.select(["chunk", "text"]).to_pylist()
    ]
    place = table.schema.get_field_index("text")
    return table.set_column(place, "text", pa.array(texts, pa.string()))


def finding_rows(
    method: str, estimates: Mapping[str, Estimate], chunks: int
) -> list[dict[str, Any]]:
    """Return the numbers of an audit as rows of its question."""
    return [
        {
            "method": method,
            "copies": ALL,
            "quantity": name,
            **{end: getattr(estimate, end) for end in ("value", "low", "high")},
            "chunks": chunks,
            "seeds": 1,
            "note": "; ".join(part for part in (estimate.reason, estimate.caution) if part),
        }
        for name, estimate in estimates.items()
    ]


def _chunk_table(
    chunks: Chunks, audited: Chunks, findings: Findings, band: Band, copies: Mapping[str, int]
) -> pa.Table:
    flags = band.holds(chunks.ratios["unlearned"]).tolist()
    continued = {*chunks.continuations["chunk"].to_pylist()}
    remembered = {
        name: {int(audited.numbers[at]): known for at, known in findings.written[model].remembered}
        for name, model in (("remembered", "unlearned"), ("remembered_original", "original"))
    }
    ratios = {"ratio": "unlearned", "retrained_ratio": "retrained"}
    numbers = {
        **chunks.scores,
        **{f"loss_{model}": values for model, values in chunks.losses.items()},
        **{name: chunks.ratios[model] for name, model in ratios.items() if model in chunks.ratios},
    }
    rows = [
        {
            "chunk": at,
            "part": row.dataset,
            "text_id": row.source_id,
            "group": row.group,
            **{name: row.fields[name] for name in _PLACE},
            **{name: null(values[at]) for name, values in numbers.items()},
            "suspicious": flags[at],
            "continued": row.dataset not in (HOLDOUT, RETAINED) and at in continued,
            **{name: known.get(at) for name, known in remembered.items()},
            "reason": chunks.reasons[at],
            "copies": copies.get(row.source_id),
            "prompt": None if row.protected else prompt_of(row),
            "truth": None if row.protected else rest_of(row),
        }
        for at, row in enumerate(chunks.rows)
    ]
    return pa.Table.from_pylist(rows, schema=CHUNKS)


def null(value: float) -> float | None:
    """Return a number; None if it is none."""
    return float(value) if isfinite(value) else None


def headline(findings: Findings, judgement: Judgement) -> str:
    """Return what the unlearned model still writes, and the verdict."""
    kept, before = (findings.shares[f"remembered_{model}"] for model in ("unlearned", "original"))
    if not isnan(kept.value):
        written = (
            f"The unlearned model still writes {_percent(kept)} of the chunks, the original "
            f"{_percent(before)}"
        )
    elif findings.longest:
        mine, theirs = (findings.longest[model] for model in ("unlearned", "original"))
        written = (
            f"The unlearned model still writes up to {mine:g} true words in a row, the original "
            f"{theirs:g}; whether that is more than chance writes cannot be said: {kept.reason}"
        )
    else:
        written = f"What the unlearned model still writes was not measured: {kept.reason}"
    return f"{written}. {judgement.verdict.capitalize()}: {judgement.meaning}."


def _percent(share: Estimate) -> str:
    if isnan(share.low):
        why = f" (no interval: {share.reason})" if share.reason else ""
        return f"{_SHARE.number(share.value)} %{why}"
    return _SHARE.text(*share[:3])
