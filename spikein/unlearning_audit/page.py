"""`audit.html`."""

from pathlib import Path

from spikein.unlearning_audit.audit import Audit
from spikein.unlearning_audit.request import AuditSettings


def write_page(path: Path, audit: Audit, settings: AuditSettings, *, hide_texts: bool) -> None:
    path.write_text("<!doctype html>")
