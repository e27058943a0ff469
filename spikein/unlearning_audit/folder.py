"""The folder of an audit: filled in a hidden sibling, then put in its place in one step.

Files in it that no audit writes are the user's, and stay when it is replaced.
"""

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
from spikein.runs.history import UserFiles
from spikein.runs.replacement import flush_tree, move_rest, swap
from spikein.store.filesystem import delete_tree
from spikein.unlearning_audit.request import AuditSettings

_OURS = frozenset({AUDIT_FILE, CHUNKS_FILE, CONTINUATIONS_FILE, QUESTIONS_FILE, PAGE_FILE})


def check_place(out: Path, *, replace: bool) -> Path:
    """Refuse, before any work, a folder that the audit must not be written to.

    Returns:
        The folder, absolute and without links.

    Raises:
        InputError: something is there that is no audit, or an audit that is not to be replaced, or
            that the command runs in.
    """
    given, out = out, out.expanduser().resolve()
    if not out.exists():
        if not out.parent.is_dir():
            raise InputError("its parent folder does not exist", where=str(given))
        return out
    if not (out / AUDIT_FILE).is_file():
        raise InputError(
            "is there already, and is no audit", where=str(given), allowed="a new folder"
        )
    if not replace:
        raise InputError(
            "holds an audit already",
            where=str(given),
            hint="Give --replace, or another folder with --out.",
        )
    if Path.cwd().is_relative_to(out):
        raise InputError(
            "the command runs in this folder, which cannot be replaced meanwhile",
            where=str(given),
            hint=f"Go to another one first: cd {out.parent}.",
        )
    return out


def write_audit(out: Path, audit: Audit, settings: AuditSettings, *, hide_texts: bool) -> None:
    """Write an audit's folder, whole or not at all.

    Args:
        out: the folder, as `check_place` returns it; an audit that is there is replaced.
        audit: what was found.
        settings: what it was asked for.
        hide_texts: show ids in the page in place of texts.

    Raises:
        InputError: files of the user could not be moved; the old folder is kept then.
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
        kept = UserFiles(_OURS) if out.exists() else None
        if kept is not None:
            kept.link_all(out, hidden)
        flush_tree(hidden)
        swap(hidden, out)
        if kept is not None and hidden.exists():
            move_rest(kept, hidden, out)
    finally:
        if hidden.exists():
            delete_tree(hidden)
