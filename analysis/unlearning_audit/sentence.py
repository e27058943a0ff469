"""The findings in words, for the command line and the page."""

from collections.abc import Callable
from typing import NamedTuple

from analysis.intervals.estimate import Estimate
from analysis.unlearning_audit.checks import Judgement
from analysis.unlearning_audit.findings import Findings, shares
from analysis.unlearning_audit.questions import QuestionFindings


class FindingLine(NamedTuple):
    """One number of an audit in words."""

    name: str
    shown: str
    """With its interval, or why there is none."""
    about: str
    """Of what it speaks; empty for nothing to add."""


def finding_lines(found: Findings, judgement: Judgement) -> list[FindingLine]:
    """Return what is still written, every check, and every share of the rule."""
    names = {
        "remembered_original": "Remembered by the original model",
        "remembered_unlearned": "Remembered by the unlearned model",
        "flagged": "Flagged by the rule",
        "false_alarms": "False alarms",
        "missed": "Remembered and not flagged",
        "wrong": "Flagged and not remembered",
        "calibrated_edge": f"Upper edge for {100 * found.threshold.rate:g} % false alarms",
        "calibrated_false_alarms": "Its false alarms, cross-fitted",
        "calibrated_flagged": "Flagged by that edge",
        "calibrated_missed": "Remembered and not flagged by it",
    }
    about = {
        "flagged": f"{found.band.low:.3f} < r < {found.band.high:.3f}",
        "false_alarms": f"on {found.false_alarms_of}",
    }
    lines = [
        FindingLine(
            names[name],
            number(one) if name == "calibrated_edge" else percent(one),
            _joined(about.get(name), one.caution),
        )
        for name, one in shares(found).items()
    ]
    units = {"weights": " (cosine)"}
    checks = [
        FindingLine(
            check.question[0].upper() + check.question[1:],
            f"{check.answer}: {number(check.measure, units.get(name, ' nats'))}",
            _joined(check.about, check.measure.caution),
        )
        for name, check in judgement.checks.items()
    ]
    return [*lines[:2], *checks, *lines[2:]]


def _joined(*parts: str | None) -> str:
    return "; ".join(part for part in parts if part)


def percent(found: Estimate) -> str:
    """Return a share with its interval in words: `12.5 % (4.0 to 31.2)`; why, where none."""
    return _in_words(found, lambda value: f"{100 * value:.1f}", " %")


def number(found: Estimate, unit: str = "") -> str:
    """Return a number with its interval in words; why, where there is none."""
    return _in_words(found, lambda value: f"{value:.3g}", unit)


def _in_words(found: Estimate, written: Callable[[float], str], unit: str) -> str:
    if found.value != found.value:
        return found.reason or "no value"
    value = f"{written(found.value)}{unit}"
    if found.low == found.low:
        return f"{value} ({written(found.low)} to {written(found.high)})"
    return f"{value} (no interval: {found.reason})" if found.reason else value


def headline(found: Findings, judgement: Judgement) -> str:
    """Return what the unlearned model still writes, and the verdict."""
    kept, before = (found.remembered[model] for model in ("unlearned", "original"))
    if kept.value == kept.value:
        said = (
            f"The unlearned model still writes {percent(kept)} of the chunks, the original "
            f"{percent(before)}"
        )
    elif found.longest:
        said = (
            f"The unlearned model still writes up to {found.longest['unlearned']:g} true words in "
            f"a row, the original {found.longest['original']:g}; whether that is more than chance "
            f"writes cannot be said: {kept.reason}"
        )
    else:
        said = f"What the unlearned model still writes was not measured: {kept.reason}"
    return f"{said}. {judgement.verdict.capitalize()}: {judgement.meaning}."


def question_sentence(found: QuestionFindings) -> str:
    """Return what the questions say."""
    return (
        f"Questions: the ratio keeps {found.kept:,} of {found.questions:,}; ROUGE-L recall "
        f"{number(found.recall_kept)} for those and {number(found.recall_rest)} for the rest, a "
        f"difference of {number(found.difference)}."
    )
