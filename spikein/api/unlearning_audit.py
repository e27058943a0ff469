"""Audit an unlearned model from Python, as `spikein audit-unlearning` does."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from analysis.findings import read_table
from analysis.page.unlearning.audit_page import write_audit_page
from analysis.unlearning_audit.audit import AUDIT_FILE, AUDITS, CHUNKS_FILE
from inject.errors import InputError
from inject.files import write_text
from inject.settings import plain
from inject.tables import read_parquet
from spikein.config.overrides import read_settings
from spikein.executors.user_model_graphs import build_steps, open_store
from spikein.progress import Progress
from spikein.store.filesystem import AnyPath
from spikein.unlearning_audit.graph import given_audit
from spikein.unlearning_audit.request import AuditSettings

PAGE_FILE = "audit.html"


class UnlearningAudit(NamedTuple):
    """The result of `audit_unlearning`."""

    folder: Path
    """The tables, unlearning_audit.json and audit.html."""
    verdict: str
    headline: str
    """The verdict, and what the unlearned model still generates, as text."""
    findings: pa.Table
    """Every number with its interval: quantity, value, low, high, note."""
    texts: pa.Table
    """One row per chunk: its scores under each model, and the decision."""
    record: dict[str, Any]
    """The content of unlearning_audit.json: settings, checks and notes."""


def audit_unlearning(
    original: AnyPath,
    unlearned: AnyPath,
    retrained: AnyPath | None = None,
    *,
    texts: AnyPath,
    out: AnyPath = "unlearning-audit",
    hide_texts: bool = False,
    store: AnyPath | None = None,
    **options: Any,
) -> UnlearningAudit:
    """Audit an unlearned model against the original: does it still know the texts?

    Args:
        original: the model before unlearning, a folder or a hub id.
        unlearned: the audited model.
        retrained: a model that was trained like the original but without the texts; it
            calibrates the rule.
        texts: file of the texts to be forgotten: a book (.txt), or rows (.jsonl, .csv, .parquet).
        out: folder of the result.
        hide_texts: show ids instead of texts in the page.
        store: cache of model scores and generations; by default in the user's cache folder.
        options: keys of an audit's file, such as `samples=20`, `holdout="other.txt"`,
            `detector="loss"`; see docs/unlearning.md.

    Returns:
        The verdict, the tables, and the folder's path.

    Raises:
        InputError: for texts that cannot be read, models that cannot be compared, and the like.

    Example:
        ```python
        import spikein

        found = spikein.audit_unlearning("my/model", "my/unlearned", texts="book.txt")
        print(found.headline)
        ```
    """
    models = {"original": str(original), "unlearned": str(unlearned)}
    models |= {} if retrained is None else {"retrained": str(retrained)}
    settings = read_settings(AuditSettings, None, [], {**options, **models, "texts": str(texts)})
    return run_audit(settings, Path(out), hide_texts=hide_texts, store=store)


def run_audit(
    settings: AuditSettings,
    out: Path,
    *,
    hide_texts: bool = False,
    store: AnyPath | None = None,
    executor: str | None = None,
    progress: Progress | None = None,
) -> UnlearningAudit:
    """Run an audit with checked settings; arguments and errors as for `audit_unlearning`.

    Args:
        settings: the settings of the audit.
        out: a new folder, in an existing one.
        hide_texts: show ids instead of texts in the page.
        store: folder of artifacts.
        executor: where steps are built, by name; in this process when None.
        progress: receives the events of the run.
    """
    _check_new(out)
    step = given_audit(settings)
    with open_store(store) as opened:
        [made] = build_steps([step], opened, executor=executor, progress=progress)
        hidden = out.with_name(f".{out.name}.tmp")
        shutil.rmtree(hidden, ignore_errors=True)
        hidden.mkdir()
        for path in made.glob("*.parquet"):
            shutil.copyfile(path, hidden / path.name)
        record = json.loads((made / AUDIT_FILE).read_text(encoding="utf-8"))
        record["settings"] |= plain(settings, exclude={"variables"})
        text = json.dumps(record, indent=2, ensure_ascii=False)
        write_text(hidden / AUDIT_FILE, f"{text}\n")
        models = {name.capitalize(): model for name, model in settings.models.items()}
        write_audit_page(
            hidden / PAGE_FILE,
            made,
            title=f"Audit of {settings.unlearned}",
            about={**models, "Texts": settings.texts, "Detector": settings.detector},
            hide_texts=hide_texts,
        )
        hidden.rename(out)
    return UnlearningAudit(
        folder=out,
        verdict=record["verdict"],
        headline=record["headline"],
        findings=read_table(out, AUDITS),
        texts=read_parquet(out / CHUNKS_FILE),
        record=record,
    )


def _check_new(out: Path) -> None:
    """Refuse, before any work, a folder that the audit cannot be written to.

    Raises:
        InputError: for a folder that exists, or whose parent does not exist.
    """
    if out.exists():
        audit = (out / AUDIT_FILE).is_file()
        raise InputError(
            "already contains an audit" if audit else "exists but is not an audit folder",
            where=str(out),
            hint="Give another folder with --out; nothing is replaced.",
        )
    if not out.absolute().parent.is_dir():
        raise InputError("its parent folder does not exist", where=str(out))
