"""The folder of an audit: filled in a hidden sibling, then put in its place in one step."""

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from analysis.unlearning_audit.findings import as_json, findings_json
from analysis.unlearning_audit.likeness import likeness
from analysis.unlearning_audit.questions import questions_json
from analysis.unlearning_audit.sentence import question_sentence, verdict
from analysis.unlearning_audit.text_chunks import Chunk
from detect.generation.continuations import CONTINUATIONS_FILE
from inject.errors import InputError
from inject.settings import plain
from spikein.runs.replacement import flush_tree, swap
from spikein.store.filesystem import delete_tree
from spikein.unlearning_audit.audit import Audit
from spikein.unlearning_audit.request import AuditSettings

AUDIT_FILE = "unlearning_audit.json"
CHUNKS_FILE = "chunks.parquet"
QUESTIONS_FILE = "questions.parquet"
PAGE_FILE = "audit.html"


def check_place(out: Path, *, replace: bool) -> None:
    """Refuse, before any work, a folder that the audit must not be written to.

    Raises:
        InputError: something is there that is no audit, or an audit that is not to be replaced.
    """
    if not out.exists():
        if not out.parent.is_dir():
            raise InputError("its parent folder does not exist", where=str(out))
        return
    if not (out / AUDIT_FILE).is_file():
        raise InputError(
            "is there already, and is no audit", where=str(out), allowed="a new folder"
        )
    if not replace:
        raise InputError(
            "holds an audit already",
            where=str(out),
            hint="Give --replace, or another folder with --out.",
        )


def write_audit(
    out: Path, audit: Audit, settings: AuditSettings, page: Callable[[Path], None]
) -> None:
    """Write an audit's folder, whole or not at all.

    Args:
        out: the folder; an audit that is there is replaced.
        audit: what was found.
        settings: what it was asked for.
        page: writes `audit.html` to the path that it is given.
    """
    hidden = out.parent / f".{out.name}.{secrets.token_hex(4)}.tmp"
    hidden.mkdir()
    try:
        pq.write_table(audit.chunk_table, hidden / CHUNKS_FILE)
        pq.write_table(audit.continuations, hidden / CONTINUATIONS_FILE)
        if audit.questions is not None:
            pq.write_table(audit.questions, hidden / QUESTIONS_FILE)
        text = json.dumps(audit_json(audit, settings), indent=2, ensure_ascii=False)
        (hidden / AUDIT_FILE).write_text(text + "\n", encoding="utf-8")
        page(hidden / PAGE_FILE)
        flush_tree(hidden)
        swap(hidden, out)
    finally:
        if hidden.exists():
            delete_tree(hidden)


def audit_json(audit: Audit, settings: AuditSettings) -> dict[str, Any]:
    """Return settings and findings as plain JSON values."""
    found: dict[str, Any] = {
        "settings": plain(settings, exclude={"variables"}),
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
