"""The table that `spikein audit-unlearning` prints."""

from typing import TYPE_CHECKING

from spikein.cli.output import Column, print_table, say

if TYPE_CHECKING:
    from spikein.api.unlearning_audit import UnlearningAudit


def print_findings(audit: "UnlearningAudit") -> None:
    """Print every share with its interval, and the verdict."""
    from analysis.unlearning_audit.sentence import finding_lines, question_sentence, verdict

    found = audit.findings
    print_table(
        [Column("share of the chunks"), Column("95 % interval in brackets"), Column("about")],
        # What could not be measured is said once, in the verdict.
        [(one.name, one.shown, one.caution) for one in finding_lines(found) if one.measured],
    )
    say(verdict(found))
    if audit.questions is not None:
        say(question_sentence(audit.questions))
