"""An audit as tables: chunks, continuations and findings, from what models scored and wrote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from analysis.copy_bins import ALL
from analysis.intervals.estimate import Estimate
from analysis.unlearning_audit.checks import LOSS_RUN, QUESTIONS, Judgement, Losses, Weights, judge
from analysis.unlearning_audit.estimates import clusters_of, null
from analysis.unlearning_audit.findings import Findings, Ratioed, find, likeness
from analysis.unlearning_audit.ratio import Band, Floats, Ratios, score_ratios
from analysis.unlearning_audit.text_chunks import Chunk
from detect.generation.text_overlap import longest_run, rouge_l_recall

QUESTION = "unlearning_audits"
"""Of the findings."""
AUDIT_FILE = "unlearning_audit.json"
CHUNKS_FILE = "chunks.parquet"
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
        ("embedding", pa.float64()),
        ("judge", pa.float64()),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What an audit is drawn from."""

    audited: Sequence[Chunk]
    held_out: Sequence[Chunk]
    """Of texts that no model saw; they count on after those that are audited."""
    scores: Mapping[str, Floats]
    """By model, one a chunk: those that are audited, then those held out."""
    reasons: Sequence[str | None]
    """Why a chunk has no score."""
    losses: Mapping[str, Floats]
    """By model, nats a token; empty where they were not measured."""
    continuations: pa.Table
    """As `CONTINUATIONS`."""
    weights: Weights
    guessing: float
    """Loss of guessing every token of the vocabulary alike."""
    copies: Mapping[str, int] = field(default_factory=dict)
    """That the original saw, by text; empty where nobody knows."""


class Audit(NamedTuple):
    """What an audit found."""

    chunks: pa.Table
    """As `CHUNKS`; `part` is `audited` or `holdout`."""
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
    count = len(given.audited)
    audited, held = slice(0, count), slice(count, None)
    ratios = score_ratios(given.scores["original"], given.scores["unlearned"])
    retrained = None
    if "retrained" in given.scores:
        theirs = given.scores["retrained"]
        retrained = score_ratios(given.scores["original"], theirs, name="retrained").values
    found = find(
        Ratioed(
            given.audited, ratios.values[audited], None if retrained is None else retrained[audited]
        ),
        Ratioed(given.held_out, ratios.values[held], None) if given.held_out else None,
        given.continuations,
        band=band,
        rate=rate,
    )
    losses = Losses(
        audited={name: values[audited] for name, values in given.losses.items()},
        clusters=clusters_of(given.audited, least_run=LOSS_RUN),
        control={name: values[held] for name, values in given.losses.items()}
        if given.held_out
        else {},
        control_clusters=clusters_of(given.held_out, least_run=LOSS_RUN),
        guessing=given.guessing,
    )
    judgement = judge(losses, given.weights, found)
    flags = band.holds(ratios.values[audited]).tolist()
    flagged = [chunk for chunk, flag in zip(given.audited, flags, strict=True) if flag]
    return Audit(
        _chunk_table(given, ratios, retrained, found, band),
        found,
        {
            **found.shares,
            **{name: judgement.checks[name].measure for name in QUESTIONS},
            **likeness(given.continuations, flagged),
        },
        judgement,
    )


def compared(model: str, chunks: Sequence[Chunk], texts: Sequence[Sequence[str]]) -> pa.Table:
    """Return a model's continuations as `CONTINUATIONS`, held against what stands there.

    ROUGE-L recall; the longest common run in words; embedding and judge are null.
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
    given: Evidence, ratios: Ratios, retrained: Floats | None, found: Findings, band: Band
) -> pa.Table:
    flags = band.holds(ratios.values)
    continued = {*given.continuations["chunk"].to_pylist()}
    rows = []
    for at, chunk in enumerate([*given.audited, *given.held_out]):
        audited = at < len(given.audited)
        rows.append(
            {
                **{name: getattr(chunk, name) for name in _OF_CHUNK},
                "part": "audited" if audited else "holdout",
                **{name: null(values[at]) for name, values in given.scores.items()},
                **{f"loss_{name}": null(values[at]) for name, values in given.losses.items()},
                "ratio": null(ratios.values[at]),
                "retrained_ratio": None if retrained is None else null(retrained[at]),
                "suspicious": bool(flags[at]),
                "continued": audited and chunk.chunk in continued,
                "remembered": found.written["unlearned"].get(chunk.chunk),
                "remembered_original": found.written["original"].get(chunk.chunk),
                "reason": given.reasons[at] or ratios.reasons[at],
                "copies": given.copies.get(chunk.text_id),
                "prompt": None if chunk.protected else chunk.prompt,
                "truth": None if chunk.protected else chunk.rest,
            }
        )
    return pa.Table.from_pylist(rows, schema=CHUNKS)
