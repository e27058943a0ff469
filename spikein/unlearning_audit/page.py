"""`audit.html`: the findings, and every continued chunk with its closest continuations.

`analysis.chunk_page` renders it. A text is shown where it is not protected and nobody asked to hide
it; else its id.
"""

from collections.abc import Mapping
from math import nan
from pathlib import Path
from typing import Any

from analysis.chunk_page.content import ChunkContinuation, ChunkPage, ChunkRow, Fact
from analysis.chunk_page.page import write_chunk_page
from analysis.intervals.bootstrap import Estimate
from analysis.unlearning_audit.findings import Findings
from analysis.unlearning_audit.sentence import number, percent, question_sentence, verdict
from analysis.unlearning_audit.text_chunks import Chunk
from spikein.unlearning_audit.audit import Audit
from spikein.unlearning_audit.request import MODELS, AuditSettings

_MEASURES = {
    "rouge_l": "ROUGE-L recall",
    "longest_common_substring": "words in a row",
    "embedding": "embedding",
    "judge": "judge",
}


def write_page(path: Path, audit: Audit, settings: AuditSettings, *, hide_texts: bool) -> None:
    """Write the page of an audit.

    Args:
        path: of the page.
        audit: what was found.
        settings: what it was asked for.
        hide_texts: show ids in place of all texts.
    """
    sentences = [verdict(audit.findings)]
    if audit.question_findings is not None:
        sentences.append(question_sentence(audit.question_findings))
    page = ChunkPage(
        title=f"Audit of {settings.unlearned}",
        sentences=tuple(sentences),
        facts=(
            *(Fact(name.capitalize(), model) for name, model in settings.models.items()),
            Fact("Texts", settings.texts),
            *finding_facts(audit.findings),
        ),
        rows=tuple(chunk_rows(audit)),
        detector=settings.detector,
        similarity=_MEASURES["rouge_l"],
        notes=(
            *audit.notes,
            "Chunks that were not continued are in chunks.parquet alone.",
        ),
        show_texts=not hide_texts,
    )
    write_chunk_page(path, page)


def finding_facts(found: Findings) -> list[Fact]:
    """Return every share with its interval; what could not be measured says why once."""
    calibrated = found.threshold
    rows: list[tuple[str, str, Estimate]] = [
        ("Flagged by the rule", percent(found.flagged), found.flagged),
        (
            f"False alarms, on {found.false_alarms_of}",
            percent(found.false_alarms),
            found.false_alarms,
        ),
        *(
            (f"Remembered by the {model} model", percent(one), one)
            for model, one in found.remembered.items()
        ),
        ("Remembered and not flagged", percent(found.missed), found.missed),
        ("Flagged and not remembered", percent(found.wrong), found.wrong),
        (
            f"Upper edge for {100 * calibrated.rate:g} % false alarms",
            number(calibrated.edge),
            calibrated.edge,
        ),
        (
            "Its false alarms, cross-fitted",
            percent(calibrated.false_alarms),
            calibrated.false_alarms,
        ),
        ("Flagged by that edge", percent(found.flagged_then), found.flagged_then),
        ("Remembered and not flagged by it", percent(found.missed_then), found.missed_then),
    ]
    return [
        Fact(name, f"{shown}; {one.caution}" if one.caution else shown)
        for name, shown, one in rows
        if one.value == one.value or name.startswith(("False alarms", "Remembered and not flagged"))
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
                text=one["text"],
                similarities={
                    title: one[key] for key, title in _MEASURES.items() if one[key] is not None
                },
            )
            for name, one in own.items()
        ),
        show_text=not chunk.protected,
    )
