"""The folder of an audit: filled in a hidden sibling, then put in its place in one step."""

import json
import secrets
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from analysis.unlearning_audit.audit_tables import Audit
from analysis.unlearning_audit.report import (
    AUDIT_FILE,
    CHUNKS_FILE,
    PAGE_FILE,
    QUESTIONS_FILE,
    audit_json,
)
from detect.generation.continuations import CONTINUATIONS_FILE
from inject.errors import InputError
from inject.settings import plain
from spikein.runs.replacement import flush_tree, swap
from spikein.store.filesystem import delete_tree
from spikein.unlearning_audit.request import AuditSettings


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
        text = json.dumps(
            audit_json(audit, plain(settings, exclude={"variables"})), indent=2, ensure_ascii=False
        )
        (hidden / AUDIT_FILE).write_text(text + "\n", encoding="utf-8")
        page(hidden / PAGE_FILE)
        flush_tree(hidden)
        swap(hidden, out)
    finally:
        if hidden.exists():
            delete_tree(hidden)
