"""What an audit says: as plain JSON values, and as a page.

A text is shown where it is not protected and nobody asked to hide it; else its id.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from analysis.chunk_page.page import ChunkContinuation, ChunkPage, ChunkRow, write_chunk_page
from analysis.intervals.estimate import Estimate
from analysis.unlearning_audit.audit_tables import MODELS, Audit
from analysis.unlearning_audit.checks import judgement_json
from analysis.unlearning_audit.estimates import clusters_of, mean, share
from analysis.unlearning_audit.findings import as_json, findings_json
from analysis.unlearning_audit.sentence import (
    finding_lines,
    headline,
    number,
    question_sentence,
)
from analysis.unlearning_audit.text_chunks import Chunk

AUDIT_FILE = "unlearning_audit.json"
CHUNKS_FILE = "chunks.parquet"
QUESTIONS_FILE = "questions.parquet"
PAGE_FILE = "audit.html"
_CLOSEST = ("rouge_l", "longest_common_substring", "embedding")
_JUDGED_ALIKE = 4
_COUNTED = "longest_common_substring"
_MEASURES = {
    "rouge_l": "ROUGE-L recall",
    _COUNTED: "Words in a row",
    "embedding": "Embedding",
    "judge": "Judge",
}


def write_audit_page(
    path: Path,
    audit: Audit,
    *,
    title: str,
    about: Mapping[str, str],
    detector: str,
    hide_texts: bool,
) -> None:
    """Write the page of an audit.

    Args:
        path: of the page.
        audit: what was found.
        title: of the page.
        about: what it was found of, such as the models.
        detector: whose scores it rests on.
        hide_texts: show ids in place of all texts.
    """
    sentences = [headline(audit.findings, audit.judgement)]
    if audit.question_findings is not None:
        sentences.append(question_sentence(audit.question_findings))
    alike = [
        (
            f"{_MEASURES.get(measure, 'Judged alike')} of what the {model} model writes",
            number(one),
            "; ".join(part for part in ("of the flagged chunks", one.caution) if part),
        )
        for model, measures in _likeness(audit).items()
        for measure, one in measures.items()
    ]
    page = ChunkPage(
        title=title,
        sentences=tuple(sentences),
        facts=(
            *((name, value, "") for name, value in about.items()),
            *finding_lines(audit.findings, audit.judgement),
            *alike,
        ),
        rows=tuple(chunk_rows(audit)),
        detector=detector,
        similarity=_MEASURES["rouge_l"],
        notes=audit.notes,
        show_texts=not hide_texts,
    )
    write_chunk_page(path, page)


def chunk_rows(audit: Audit) -> list[ChunkRow]:
    """Return the audited chunks as the page shows them; the continued ones have texts."""
    closest: dict[tuple[int, str], dict[str, Any]] = {}
    for row in audit.continuations.to_pylist():
        key = row["chunk"], row["model"]
        if key not in closest or row["rouge_l"] > closest[key]["rouge_l"]:
            closest[key] = row
    return [
        _row(audit.chunks[row["chunk"]], row, closest)
        for row in audit.chunk_table.to_pylist()
        if row["part"] == "audited"
    ]


def _row(
    chunk: Chunk, row: Mapping[str, Any], closest: Mapping[tuple[int, str], Mapping[str, Any]]
) -> ChunkRow:
    own = {name: closest[chunk.chunk, name] for name in MODELS if (chunk.chunk, name) in closest}
    ratio = nan if row["ratio"] is None else row["ratio"]
    return ChunkRow(
        chunk=f"{chunk.text_id}, characters {chunk.start:,} to {chunk.stop:,}",
        # The nearer to 1, the less has changed.
        suspicion=-max(ratio, 1 / ratio) if ratio == ratio else nan,
        suspicious=row["suspicious"],
        remembered=row["remembered"],
        ratio=ratio,
        similarity=own["unlearned"]["rouge_l"] if "unlearned" in own else nan,
        scores={name: row[name] for name in MODELS if row[name] is not None},
        context=chunk.prompt,
        truth=chunk.rest,
        continuations=tuple(
            ChunkContinuation(
                model=name,
                text=one["text"] or "",
                similarities={
                    title: int(one[key]) if key == _COUNTED else one[key]
                    for key, title in _MEASURES.items()
                    if one[key] is not None
                },
            )
            for name, one in own.items()
        ),
        show_text=not chunk.protected,
    )


def audit_json(audit: Audit, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings and findings as plain JSON values."""
    found: dict[str, Any] = {
        "settings": dict(settings),
        **judgement_json(audit.judgement),
        "headline": headline(audit.findings, audit.judgement),
        "findings": findings_json(audit.findings),
        "continuations": {
            model: {measure: as_json(one) for measure, one in measures.items()}
            for model, measures in _likeness(audit).items()
        },
        "notes": list(audit.notes),
    }
    if audit.question_findings is not None:
        found["questions"] = {
            **{
                key: as_json(one) if isinstance(one, Estimate) else one
                for key, one in audit.question_findings._asdict().items()
            },
            "sentence": question_sentence(audit.question_findings),
        }
    return found


def _likeness(audit: Audit) -> dict[str, dict[str, Estimate]]:
    """Return by model and measure how like the truth the continuations of the flagged chunks are.

    Of the text measures and embeddings the closest of a chunk's continuations counts, as in Shi et
    al. 2024, figure 7; of the judge's scores the share of all continuations that get 4 or 5.
    """
    rows = audit.chunk_table.select(["part", "suspicious"]).to_pylist()
    flagged = [
        chunk
        for chunk, row in zip(audit.chunks, rows, strict=True)
        if row["suspicious"] and row["part"] == "audited"
    ]
    wanted = {chunk.chunk for chunk in flagged}
    by_model: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    columns = ["chunk", "model", *_CLOSEST, "judge"]
    for row in audit.continuations.select(columns).to_pylist():
        if row["chunk"] in wanted:
            by_model[row["model"]][row["chunk"]].append(row)
    return {model: _of_model(rows, flagged) for model, rows in by_model.items()}


def _of_model(
    rows: dict[int, list[dict[str, Any]]], chunks: Sequence[Chunk]
) -> dict[str, Estimate]:
    there = [chunk for chunk in chunks if chunk.chunk in rows]
    clusters = clusters_of(there)
    found: dict[str, Estimate] = {}
    for column in _CLOSEST:
        values = [[one[column] for one in rows[chunk.chunk]] for chunk in there]
        if any(value is not None for value in values[0]):
            best = [max(one for one in own if one is not None) for own in values]
            found[column] = mean(np.array(best, dtype=np.float64), clusters)
    scores = [
        [one["judge"] for one in rows[chunk.chunk] if one["judge"] is not None] for chunk in there
    ]
    if any(scores):
        alike = [sum(score >= _JUDGED_ALIKE for score in own) for own in scores]
        found["judged_alike"] = share(
            np.array(alike, dtype=np.float64), clusters, among=[float(len(own)) for own in scores]
        )
    return found
