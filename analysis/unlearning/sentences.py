"""The verdict of one method in one sentence, with its numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan

from analysis.unlearning.rows import NO_DETECTOR


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One measure's word on one method."""

    measure: str
    detector: str = NO_DETECTOR
    versus: str = ""
    """Of a difference: `retrained` or `original`."""
    kind: str
    """`forgetting` (a position) or `utility` (a difference to another model)."""
    verdict: str
    value: float = nan
    low: float = nan
    high: float = nan
    unlearned: float = nan
    retrained: float = nan
    original: float = nan
    groups: int = 0
    seeds: int = 0
    note: str = ""
    """Why there is no interval, or the margin; at `all` the verdict in words."""


_OVERALL = {
    "closer to the retrained": "is closer to the retrained model than to the original",
    "closer to the original": "is closer to the original than to the retrained model",
    "beyond the retrained": "forgot more than the retrained model never knew (over-forgotten)",
    "mirror of the original": "is the mirror of the original: over-forgotten, and as easily told "
    "from a model that never saw the texts as the original is",
    "ruined": "is ruined: of what it should have kept it has less than the retrained model and the "
    "original have, by more than the margin",
    "diverged": "diverged: it has no finite score",
    "cannot be told": "cannot be placed between the retrained model and the original",
    "the measures disagree": "is closer to the original by some measures and not by others",
}
_NAMES = {
    "exact_memorisation": "exact memorisation",
    "extraction_strength": "extraction strength",
    "forget_log_probability": "log-probability of the forget set",
    "retain_log_probability_difference": "retained text",
    "general_log_probability_difference": "general text",
    "task_accuracy_difference": "accuracy on retained questions",
}
_MODELS = {"retrained": "retrained model", "original": "original"}
_UNITS = {
    "retain_log_probability_difference": " nats a token",
    "general_log_probability_difference": " nats a token",
}


def verdict_sentence(
    method: str, overall: str, findings: Sequence[Finding], diverged: Sequence[int] = ()
) -> str:
    """Return the sentence.

    Args:
        method: the method setting's label.
        overall: its verdict.
        findings: what each measure says.
        diverged: seeds in which the model has no finite score.
    """
    parts = [f"{method} {_OVERALL[overall]}"]
    by_verdict: dict[str, list[str]] = {}
    for one in findings:
        if one.kind == "forgetting" and one.verdict != "diverged":
            by_verdict.setdefault(one.verdict, []).append(f"{_name(one)} {_numbers(one)}")
    for verdict, texts in by_verdict.items():
        parts.append(f"{verdict} by {', '.join(texts)}")
    if by_verdict:
        parts[-1] += " (position: 0 is the retrained model, 1 the original)"
    for other in dict.fromkeys(one.versus for one in findings if one.kind == "utility"):
        utility = [
            f"{_name(one)} {_numbers(one, _UNITS.get(one.measure, ''), signed=True)} "
            f"({one.verdict})"
            for one in findings
            if one.kind == "utility" and one.versus == other
        ]
        parts.append(f"against the {_MODELS[other]}: {', '.join(utility)}")
    if diverged and overall != "diverged":
        named = ", ".join(map(str, diverged))
        parts.append(f"it diverged with seed {named}, which no number here includes")
    return "; ".join(parts) + "."


def _name(one: Finding) -> str:
    return f"AUC of {one.detector}" if one.measure == "auc" else _NAMES[one.measure]


def _numbers(one: Finding, unit: str = "", *, signed: bool = False) -> str:
    form = "+.2f" if signed else ".2f"
    if isnan(one.value):
        return "without a value"
    if isnan(one.low):
        return f"{one.value:{form}}{unit} (no interval)"
    return f"{one.value:{form}} [{one.low:{form}}, {one.high:{form}}]{unit}"
