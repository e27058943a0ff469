"""The audit of an unlearned model, from Python; what `spikein audit-unlearning` does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from analysis.unlearning_audit.checks import Judgement
from analysis.unlearning_audit.findings import Findings
from analysis.unlearning_audit.questions import QuestionFindings
from spikein.api.folders import AnyPath
from spikein.unlearning_audit.audit import audit_models
from spikein.unlearning_audit.folder import check_place, write_audit
from spikein.unlearning_audit.request import AuditSettings, read_settings


class UnlearningAudit(NamedTuple):
    """What `audit_unlearning` gives."""

    folder: Path
    """Tables of chunks, continuations and questions, unlearning_audit.json, audit.html."""
    findings: Findings
    """Every share with its interval."""
    questions: QuestionFindings | None
    """What the questions say; None where none were asked."""
    judgement: Judgement
    """The verdict, and the checks that it rests on."""
    notes: tuple[str, ...]
    """What to know about the numbers."""


def audit_unlearning(
    original: AnyPath,
    unlearned: AnyPath,
    retrained: AnyPath | None = None,
    *,
    texts: AnyPath,
    out: AnyPath = "unlearning-audit",
    hide_texts: bool = False,
    **options: Any,
) -> UnlearningAudit:
    """Audit an unlearned model against the original: does it still know the texts?

    Args:
        original: the model before unlearning, a folder or a hub id.
        unlearned: the model that is audited.
        retrained: a model that was made like the original, and never saw the texts; with it the
            rule is calibrated.
        texts: file of what should be forgotten: a book (.txt), or rows (.jsonl, .csv, .parquet).
        out: folder of the result.
        hide_texts: show ids in the page, in place of texts.
        options: keys of an audit's file, such as `samples=20`, `holdout="other.txt"`,
            `detector="loss"`; see docs/unlearning-audit.md.

    Returns:
        The findings, and where the folder lies.

    Raises:
        InputError: for texts that cannot be read, models that cannot be compared, and the like.

    Example:
        ```python
        import spikein

        found = spikein.audit_unlearning("my/model", "my/unlearned", texts="book.txt")
        print(found.judgement.verdict, found.findings.remembered["unlearned"])
        ```
    """
    given = {"original": str(original), "unlearned": str(unlearned), "texts": str(texts)}
    given |= {} if retrained is None else {"retrained": str(retrained)}
    settings = read_settings(None, [], {**options, **given})
    return run_audit(settings, Path(out), hide_texts=hide_texts)


def run_audit(
    settings: AuditSettings,
    out: Path,
    *,
    hide_texts: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> UnlearningAudit:
    """Make an audit of checked settings; arguments and errors as for `audit_unlearning`."""
    place = check_place(out)
    found = audit_models(settings, progress or _silent)
    write_audit(place, found, settings, hide_texts=hide_texts)
    return UnlearningAudit(
        folder=out.expanduser(),
        findings=found.findings,
        questions=found.question_findings,
        judgement=found.judgement,
        notes=found.notes,
    )


def _silent(what: str, done: int, total: int) -> None:
    pass
