"""The table that `spikein audit-unlearning` prints."""

from typing import TYPE_CHECKING

from spikein.cli.output import Column, print_table, say

if TYPE_CHECKING:
    from analysis.intervals.bootstrap import Estimate
    from spikein.api.unlearning_audit import UnlearningAudit


def print_findings(audit: "UnlearningAudit") -> None:
    """Print every share with its interval, and the verdict."""
    from analysis.unlearning_audit.sentence import number, percent, question_sentence, verdict

    found = audit.findings
    calibrated = found.threshold
    rows: list[tuple[str, str, Estimate]] = [
        ("flagged by the rule", percent(found.flagged), found.flagged),
        ("false alarms", percent(found.false_alarms), found.false_alarms),
        *(
            (f"remembered by the {model} model", percent(one), one)
            for model, one in found.remembered.items()
        ),
        ("remembered and not flagged", percent(found.missed), found.missed),
        ("flagged and not remembered", percent(found.wrong), found.wrong),
        (
            f"upper edge for {100 * calibrated.rate:g} % false alarms",
            number(calibrated.edge),
            calibrated.edge,
        ),
        (
            "its false alarms, cross-fitted",
            percent(calibrated.false_alarms),
            calibrated.false_alarms,
        ),
        ("flagged by that edge", percent(found.flagged_then), found.flagged_then),
        ("remembered and not flagged by it", percent(found.missed_then), found.missed_then),
    ]
    print_table(
        [Column("share of the chunks"), Column("95 % interval in brackets"), Column("about")],
        # What could not be measured is said once, in the verdict.
        [(name, shown, one.caution or "") for name, shown, one in rows if one.value == one.value],
    )
    say(verdict(found))
    if audit.questions is not None:
        say(question_sentence(audit.questions))
