"""The folder of an audit: filled in a hidden sibling, then renamed. Nothing is replaced."""

import json
import secrets
from pathlib import Path

import pyarrow.parquet as pq

from analysis.unlearning_audit.audit_tables import Audit
from analysis.unlearning_audit.report import (
    AUDIT_FILE,
    CHUNKS_FILE,
    PAGE_FILE,
    QUESTIONS_FILE,
    audit_json,
    write_audit_page,
)
from detect.generation.continuations import CONTINUATIONS_FILE
from inject.errors import InputError
from inject.settings import plain
from spikein.runs.publication import flush_tree
from spikein.store.filesystem import delete_tree
from spikein.unlearning_audit.request import AuditSettings


def check_place(out: Path) -> Path:
    """Refuse, before any work, a folder that the audit cannot be written to.

    Returns:
        The folder, absolute and without links.

    Raises:
        InputError: it exists, or the folder around it does not.
    """
    given, out = out, out.expanduser().resolve()
    if out.exists():
        audit = (out / AUDIT_FILE).is_file()
        raise InputError(
            "holds an audit already" if audit else "exists but is not an audit folder",
            where=str(given),
            hint="Give another folder with --out; nothing is replaced.",
        )
    if not out.parent.is_dir():
        raise InputError("its parent folder does not exist", where=str(given))
    return out


def write_audit(out: Path, audit: Audit, settings: AuditSettings, *, hide_texts: bool) -> None:
    """Write an audit's folder, whole or not at all.

    Args:
        out: the folder, as `check_place` returns it.
        audit: what was found.
        settings: what it was asked for.
        hide_texts: show ids in the page in place of texts.
    """
    hidden = out.parent / f".{out.name}.{secrets.token_hex(4)}.tmp"
    hidden.mkdir()
    try:
        pq.write_table(audit.chunk_table, hidden / CHUNKS_FILE)
        pq.write_table(audit.continuations, hidden / CONTINUATIONS_FILE)
        if audit.questions is not None:
            pq.write_table(audit.questions, hidden / QUESTIONS_FILE)
        text = json.dumps(
            audit_json(audit, plain(settings, exclude={"variables"})), indent=2, ensure_ascii=False
        )
        (hidden / AUDIT_FILE).write_text(text + "\n", encoding="utf-8")
        models = {name.capitalize(): model for name, model in settings.models.items()}
        write_audit_page(
            hidden / PAGE_FILE,
            audit,
            title=f"Audit of {settings.unlearned}",
            about={**models, "Texts": settings.texts},
            detector=settings.detector,
            hide_texts=hide_texts,
        )
        flush_tree(hidden)
        hidden.rename(out)
    finally:
        if hidden.exists():
            delete_tree(hidden)
