"""An audit as tables: chunks, continuations and findings, from what models scored and wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analysis.copy_bins import ALL
from analysis.intervals.estimate import Estimate
from analysis.unlearning_audit.checks import LOSS_RUN, QUESTIONS, Judgement, Losses, Weights, judge
from analysis.unlearning_audit.estimates import clusters_of, null
from analysis.unlearning_audit.findings import Findings, Ratioed, find, likeness, question_findings
from analysis.unlearning_audit.ratio import Band, Floats, Scores, score_ratios
from analysis.unlearning_audit.text_chunks import AUDITED, HOLDOUT, RETAINED, Chunk
from analysis.unlearning_audit.text_chunks import QUESTION as QUESTION_PART
from detect.generation.text_overlap import longest_run, rouge_l_recall

QUESTION = "unlearning_audits"
"""Of the findings."""
AUDIT_FILE = "unlearning_audit.json"
CHUNKS_FILE = "chunks.parquet"
PARTS = (AUDITED, HOLDOUT, RETAINED, QUESTION_PART)
MODELS = ("original", "unlearned", "retrained")
_OF_CHUNK = ("chunk", "text_id", "group", "start", "stop", "prompt_stop")
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
CONTINUATIONS = pa.schema(
    [
        ("chunk", pa.int64()),
        ("model", pa.string()),
        ("sample", pa.int64()),
        ("text", pa.string()),
        ("rouge_l", pa.float64()),
        ("longest_common_substring", pa.float64()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What an audit is drawn from."""

    chunks: Sequence[Chunk]
    """Those that are audited, those of texts that no model saw, those that the unlearned model
    should still know, and questions."""
    scores: Mapping[str, Floats]
    """By model, one a chunk."""
    reasons: Sequence[str | None]
    """Why a chunk has no score."""
    losses: Mapping[str, Floats]
    """By model, nats a token; empty where they were not measured."""
    continuations: pa.Table
    """As `CONTINUATIONS`."""
    weights: Weights
    guessing: float
    """Loss of guessing tokens by their frequency; infinite if it is unknown."""
    copies: Mapping[str, int] = field(default_factory=dict)
    """That the original saw, by text; empty where nobody knows."""


class Audit(NamedTuple):
    """What an audit found."""

    chunks: pa.Table
    """As `CHUNKS`."""
    found: Findings
    estimates: dict[str, Estimate]
    """Every number of the table of findings, by its quantity."""
    judgement: Judgement


def audit_chunks(given: Evidence, *, band: Band, rate: float) -> Audit:
    """Return the audit of one unlearned model.

    Args:
        given: chunks, and what each model scored and wrote.
        band: of suspicious ratios.
        rate: of false alarms, that the calibrated band is to have.
    """
    parts = np.array([chunk.part for chunk in given.chunks], dtype=object)
    audited, held, retained, asked = (np.flatnonzero(parts == part) for part in PARTS)
    chunks, held_out, retained_chunks, questions = (
        [given.chunks[place] for place in places.tolist()]
        for places in (audited, held, retained, asked)
    )
    ratios = score_ratios(given.scores["original"], given.scores["unlearned"])
    of_retrained = None
    if "retrained" in given.scores:
        scores = given.scores["retrained"]
        of_retrained = score_ratios(given.scores["original"], scores, name="retrained").values
    found = find(
        Ratioed(
            chunks,
            ratios.values[audited],
            None if of_retrained is None else of_retrained[audited],
        ),
        Ratioed(held_out, ratios.values[held], None) if held_out else None,
        given.continuations,
        band=band,
        rate=rate,
    )
    losses = Losses(
        audited={name: values[audited] for name, values in given.losses.items()},
        clusters=clusters_of(chunks, least_run=LOSS_RUN),
        control={name: values[held] for name, values in given.losses.items()} if held_out else {},
        control_clusters=clusters_of(held_out, least_run=LOSS_RUN),
        retained={name: values[retained] for name, values in given.losses.items()}
        if retained_chunks
        else {},
        retained_clusters=clusters_of(retained_chunks, least_run=LOSS_RUN),
        guessing=given.guessing,
    )
    judgement = judge(losses, given.weights, found)
    flags = band.holds(ratios.values[audited]).tolist()
    flagged = [chunk for chunk, flag in zip(chunks, flags, strict=True) if flag]
    return Audit(
        _chunk_table(given, ratios, of_retrained, found, band),
        found,
        {
            **found.shares,
            **{name: judgement.checks[name].measure for name in QUESTIONS},
            **likeness(given.continuations, flagged),
            **question_findings(questions, ratios.values[asked], given.continuations, band),
        },
        judgement,
    )


def compared(model: str, chunks: Sequence[Chunk], texts: Sequence[Sequence[str]]) -> pa.Table:
    """Return a model's continuations as `CONTINUATIONS`, held against what stands there.

    ROUGE-L recall; the longest common run in words.
    """
    rows = [
        {
            "chunk": chunk.chunk,
            "model": model,
            "sample": sample,
            "text": text,
            "rouge_l": rouge_l_recall(text, chunk.rest, whole=True),
            "longest_common_substring": longest_run(text, chunk.rest),
        }
        for chunk, samples in zip(chunks, texts, strict=True)
        for sample, text in enumerate(samples)
    ]
    return pa.Table.from_pylist(rows, schema=CONTINUATIONS)


def without_protected(continuations: pa.Table, chunks: Sequence[Chunk]) -> pa.Table:
    """Return continuations, their text null where the chunk is protected: it may be that text."""
    hidden = {chunk.chunk for chunk in chunks if chunk.protected}
    texts = [
        None if row["chunk"] in hidden else row["text"]
        for row in continuations.select(["chunk", "text"]).to_pylist()
    ]
    place = continuations.schema.get_field_index("text")
    return continuations.set_column(place, "text", pa.array(texts, pa.string()))


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
    given: Evidence, ratios: Scores, retrained: Floats | None, found: Findings, band: Band
) -> pa.Table:
    flags = band.holds(ratios.values)
    continued = {*given.continuations["chunk"].to_pylist()}
    rows = []
    for at, chunk in enumerate(given.chunks):
        rows.append(
            {
                **{name: getattr(chunk, name) for name in _OF_CHUNK},
                "part": chunk.part,
                **{name: null(values[at]) for name, values in given.scores.items()},
                **{f"loss_{name}": null(values[at]) for name, values in given.losses.items()},
                "ratio": null(ratios.values[at]),
                "retrained_ratio": None if retrained is None else null(retrained[at]),
                "suspicious": bool(flags[at]),
                "continued": chunk.part not in (HOLDOUT, RETAINED) and chunk.chunk in continued,
                "remembered": found.written["unlearned"].get(chunk.chunk),
                "remembered_original": found.written["original"].get(chunk.chunk),
                "reason": given.reasons[at] or ratios.reasons[at],
                "copies": given.copies.get(chunk.text_id),
                "prompt": None if chunk.protected else chunk.prompt,
                "truth": None if chunk.protected else chunk.rest,
            }
        )
    return pa.Table.from_pylist(rows, schema=CHUNKS)


def finding_lines(
    rows: Sequence[Mapping[str, Any]], record: Mapping[str, Any]
) -> list[tuple[str, str, str]]:
    """Return a line a number: its name, the number with its interval, and of what it speaks.

    Args:
        rows: of an audit's findings.
        record: of its JSON file.
    """
    checks: Mapping[str, Mapping[str, str]] = record["checks"]
    low, high = record["settings"]["audit"]["band"]
    about = {
        "flagged": f"{low:.3f} < r < {high:.3f}",
        "false_alarms": f"on {record['control']}",
        **{name: check["about"] for name, check in checks.items()},
    }
    lines = []
    for row in rows:
        quantity = row["quantity"]
        parts = [number_text(row), about.get(quantity, ""), row["note"]]
        name = quantity.replace("_", " ")
        if quantity in checks:
            name = checks[quantity]["question"]
            parts[0] = ": ".join(part for part in (checks[quantity]["answer"], parts[0]) if part)
        said = "; ".join(part for part in parts[1:] if part)
        lines.append((f"{name[0].upper()}{name[1:]}", parts[0], said))
    return lines


def number_text(row: Mapping[str, Any]) -> str:
    """Return a number with its interval: `0.125 (0.04 to 0.312)`; empty for none."""
    value, low, high = (f"{row[end]:.3g}" for end in ("value", "low", "high"))
    if isnan(row["value"]):
        return ""
    return value if isnan(row["low"]) else f"{value} ({low} to {high})"


def headline(found: Findings, judgement: Judgement) -> str:
    """Return what the unlearned model still writes, and the verdict."""
    kept, before = (found.shares[f"remembered_{model}"] for model in ("unlearned", "original"))
    if not isnan(kept.value):
        written = (
            f"The unlearned model still writes {_percent(kept)} of the chunks, the original "
            f"{_percent(before)}"
        )
    elif found.longest:
        written = (
            f"The unlearned model still writes up to {found.longest['unlearned']:g} true words in "
            f"a row, the original {found.longest['original']:g}; whether that is more than chance "
            f"writes cannot be said: {kept.reason}"
        )
    else:
        written = f"What the unlearned model still writes was not measured: {kept.reason}"
    return f"{written}. {judgement.verdict.capitalize()}: {judgement.meaning}."


def _percent(share: Estimate) -> str:
    value, low, high = (f"{100 * end:.1f}" for end in share[:3])
    if isnan(share.low):
        return f"{value} % (no interval: {share.reason})" if share.reason else f"{value} %"
    return f"{value} % ({low} to {high})"
