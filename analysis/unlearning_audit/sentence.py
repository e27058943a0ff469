"""The findings in a sentence each, for the command line and the page."""

from analysis.intervals.bootstrap import Estimate
from analysis.unlearning_audit.findings import Findings
from analysis.unlearning_audit.questions import QuestionFindings


def percent(found: Estimate) -> str:
    """Return a share with its interval in words: `12.5 % (4.0 to 31.2)`; why, where none."""
    if found.value != found.value:
        return found.reason or "no value"
    value = f"{100 * found.value:.1f} %"
    if found.low != found.low:
        return f"{value} (no interval: {found.reason})"
    return f"{value} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def number(found: Estimate) -> str:
    """Return a number with its interval in words; why, where there is none."""
    if found.value != found.value:
        return found.reason or "no value"
    if found.low != found.low:
        return f"{found.value:.3g} (no interval: {found.reason})"
    return f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})"


def verdict(found: Findings) -> str:
    """Return what the audit says, in one sentence and its limits."""
    said = (
        f"The rule flags {percent(found.flagged)} of the chunks as not unlearned"
        f" ({found.band.low:.3f} < r < {found.band.high:.3f})"
    )
    if found.false_alarms_of == "nothing":
        return (
            f"{said}; how many of these are false alarms cannot be said without a retrained model "
            "or held-out texts."
        )
    said += f"; on {found.false_alarms_of} it flags {percent(found.false_alarms)}"
    kept = found.remembered["unlearned"]
    if kept.value == kept.value:
        said += f". The unlearned model still writes {percent(kept)} of the chunks"
        before = found.remembered["original"]
        if before.value == before.value:
            said += f", the original {percent(before)}"
    missed = found.missed
    if missed.value == missed.value:
        said += f"; the rule misses {percent(missed)} of those that the unlearned model writes"
    else:
        said += f"; {missed.reason}"
    return f"{said}."


def question_sentence(found: QuestionFindings) -> str:
    """Return what the questions say."""
    return (
        f"Questions: the ratio keeps {found.kept:,} of {found.questions:,}; ROUGE-L recall "
        f"{number(found.recall_kept)} for those and {number(found.recall_rest)} for the rest, a "
        f"difference of {number(found.difference)}."
    )
