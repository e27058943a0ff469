"""`audit.html` of a command's audit."""

from pathlib import Path

from analysis.unlearning_audit.audit_tables import Audit
from analysis.unlearning_audit.report import write_audit_page
from spikein.unlearning_audit.request import AuditSettings


def write_page(path: Path, audit: Audit, settings: AuditSettings, *, hide_texts: bool) -> None:
    """Write the page of an audit, see `analysis.unlearning_audit.report`."""
    models = {name.capitalize(): model for name, model in settings.models.items()}
    write_audit_page(
        path,
        audit,
        title=f"Audit of {settings.unlearned}",
        about={**models, "Texts": settings.texts},
        detector=settings.detector,
        hide_texts=hide_texts,
    )
