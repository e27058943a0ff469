"""What an audit says: as plain JSON values, and as a page.

A text is shown where it is not protected and nobody asked to hide it; else its id.
"""

from collections.abc import Mapping
from math import nan
from pathlib import Path
from typing import Any

from analysis.chunk_page.content import ChunkContinuation, ChunkPage, ChunkRow, Fact
from analysis.chunk_page.page import write_chunk_page
from analysis.unlearning_audit.audit_tables import MODELS, Audit
from analysis.unlearning_audit.findings import Findings, as_json, findings_json
from analysis.unlearning_audit.likeness import likeness
from analysis.unlearning_audit.questions import questions_json
from analysis.unlearning_audit.sentence import (
    FALSE_ALARMS,
    MISSED,
    MISSED_THEN,
    finding_lines,
    question_sentence,
    verdict,
)
from analysis.unlearning_audit.text_chunks import Chunk

AUDIT_FILE = "unlearning_audit.json"
CHUNKS_FILE = "chunks.parquet"
QUESTIONS_FILE = "questions.parquet"
PAGE_FILE = "audit.html"
_COUNTED = "longest_common_substring"
_MEASURES = {
    "rouge_l": "ROUGE-L recall",
    _COUNTED: "words in a row",
    "embedding": "embedding",
    "judge": "judge",
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
    sentences = [verdict(audit.findings)]
    if audit.question_findings is not None:
        sentences.append(question_sentence(audit.question_findings))
    page = ChunkPage(
        title=title,
        sentences=tuple(sentences),
        facts=(
            *(Fact(name, value) for name, value in about.items()),
            *finding_facts(audit.findings),
        ),
        rows=tuple(chunk_rows(audit)),
        detector=detector,
        similarity=_MEASURES["rouge_l"],
        notes=(*audit.notes, "Chunks that were not continued are in chunks.parquet alone."),
        show_texts=not hide_texts,
    )
    write_chunk_page(path, page)


def finding_facts(found: Findings) -> list[Fact]:
    """Return every share with its interval; what could not be measured says why once."""
    return [
        Fact(
            f"{line.name}, on {found.false_alarms_of}" if line.name == FALSE_ALARMS else line.name,
            f"{line.shown}; {line.caution}" if line.caution else line.shown,
        )
        for line in finding_lines(found)
        if line.measured or line.name in (FALSE_ALARMS, MISSED, MISSED_THEN)
    ]


def chunk_rows(audit: Audit) -> list[ChunkRow]:
    """Return the continued chunks as the page shows them."""
    closest: dict[tuple[int, str], dict[str, Any]] = {}
    for row in audit.continuations.to_pylist():
        key = row["chunk"], row["model"]
        if key not in closest or row["rouge_l"] > closest[key]["rouge_l"]:
            closest[key] = row
    return [
        _row(audit.chunks[row["chunk"]], row, closest)
        for row in audit.chunk_table.to_pylist()
        if row["continued"]
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
        "verdict": verdict(audit.findings),
        "findings": findings_json(audit.findings),
        "continuations": {
            model: {measure: as_json(one) for measure, one in measures.items()}
            for model, measures in likeness(audit.continuations, suspicious_chunks(audit)).items()
        },
        "notes": list(audit.notes),
    }
    if audit.question_findings is not None:
        found["questions"] = {
            **questions_json(audit.question_findings),
            "sentence": question_sentence(audit.question_findings),
        }
    return found


def suspicious_chunks(audit: Audit) -> list[Chunk]:
    """Return the audited chunks that the rule flags."""
    rows = audit.chunk_table.select(["part", "suspicious"]).to_pylist()
    return [
        chunk
        for chunk, row in zip(audit.chunks, rows, strict=True)
        if row["suspicious"] and row["part"] == "audited"
    ]
