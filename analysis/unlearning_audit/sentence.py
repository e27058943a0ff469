"""The findings in words, for the command line and the page."""

from typing import NamedTuple

from analysis.intervals.bootstrap import Estimate
from analysis.unlearning_audit.findings import Findings
from analysis.unlearning_audit.questions import QuestionFindings

FALSE_ALARMS, MISSED = "False alarms", "Remembered and not flagged"
MISSED_THEN = "Remembered and not flagged by it"


class FindingLine(NamedTuple):
    """One number of an audit in words."""

    name: str
    shown: str
    """With its interval, or why there is none."""
    caution: str
    """Of what alone it speaks; empty for nothing to add."""
    measured: bool


def finding_lines(found: Findings) -> list[FindingLine]:
    """Return every share with its interval, in the order of an audit."""
    calibrated = found.threshold
    edge = f"Upper edge for {100 * calibrated.rate:g} % false alarms"
    numbers = {
        "Flagged by the rule": found.flagged,
        FALSE_ALARMS: found.false_alarms,
        **{f"Remembered by the {model} model": one for model, one in found.remembered.items()},
        MISSED: found.missed,
        "Flagged and not remembered": found.wrong,
        edge: calibrated.edge,
        "Its false alarms, cross-fitted": calibrated.false_alarms,
        "Flagged by that edge": found.flagged_then,
        MISSED_THEN: found.missed_then,
    }
    return [
        FindingLine(
            name,
            number(one) if name == edge else percent(one),
            one.caution or "",
            one.value == one.value,
        )
        for name, one in numbers.items()
    ]


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
