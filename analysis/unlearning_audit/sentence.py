"""What an audit found, in words: one sentence, and a line a number."""

from collections.abc import Callable, Mapping
from math import isnan
from typing import Any, NamedTuple

from analysis.intervals.estimate import Estimate
from analysis.unlearning_audit.checks import Judgement
from analysis.unlearning_audit.findings import Findings

_SHARES = {
    "remembered_original": "Remembered by the original model",
    "remembered_unlearned": "Remembered by the unlearned model",
    "flagged": "Flagged by the rule",
    "false_alarms": "False alarms",
    "missed": "Remembered and not flagged",
    "wrong": "Flagged and not remembered",
    "calibrated_false_alarms": "False alarms of that edge, cross-fitted",
    "calibrated_flagged": "Flagged by that edge",
    "calibrated_missed": "Remembered and not flagged by that edge",
    "flagged_holdout": "Flagged of the holdout",
}
_NUMBERS = {
    "calibrated_edge": "Upper edge with the false alarms asked for",
    "recall_kept": "ROUGE-L recall of the answers to kept questions",
    "recall_rest": "ROUGE-L recall of the other answers",
    "recall_difference": "Recall of the kept less the rest",
}
_MEASURES = {
    "rouge_l": "ROUGE-L recall",
    "longest_common_substring": "Words in a row",
    "embedding": "Similarity of embeddings",
    "judged_alike": "Judged alike",
}


class FindingLine(NamedTuple):
    """One number of an audit in words."""

    name: str
    shown: str
    """With its interval."""
    about: str
    """Of what it speaks, and why there is none; empty for nothing to add."""


def finding_lines(rows: list[Mapping[str, Any]], record: Mapping[str, Any]) -> list[FindingLine]:
    """Return a line a number.

    Args:
        rows: of an audit's findings.
        record: of its JSON file.
    """
    low, high = record["settings"]["audit"]["band"]
    about = {
        "flagged": f"{low:.3f} < r < {high:.3f}",
        "false_alarms": f"on {record['control']}",
        **{name: check["about"] for name, check in record["checks"].items()},
    }
    return [
        FindingLine(
            *_named(row, record["checks"]),
            "; ".join(part for part in (about.get(row["quantity"]), row["note"]) if part),
        )
        for row in rows
    ]


def _named(row: Mapping[str, Any], checks: Mapping[str, Mapping[str, str]]) -> tuple[str, str]:
    """Return what a number is called, and the number."""
    quantity = row["quantity"]
    if check := checks.get(quantity):
        unit = " (cosine)" if quantity == "weights" else " nats"
        question, value = check["question"], _number(row, unit)
        return f"{question[0].upper()}{question[1:]}", ": ".join(
            filter(None, [check["answer"], value])
        )
    if quantity in _SHARES:
        return _SHARES[quantity], _percent(row)
    if quantity in _NUMBERS:
        return _NUMBERS[quantity], _number(row)
    measure, _, model = quantity.rpartition("_")
    return f"{_MEASURES[measure]} of what the {model} model writes of flagged chunks", _number(row)


def _percent(row: Mapping[str, Any]) -> str:
    """Return a share with its interval in words: `12.5 % (4.0 to 31.2)`; empty for none."""
    return _in_words(row, lambda value: f"{100 * value:.1f}", " %")


def _number(row: Mapping[str, Any], unit: str = "") -> str:
    return _in_words(row, lambda value: f"{value:.3g}", unit)


def _in_words(row: Mapping[str, Any], written: Callable[[float], str], unit: str) -> str:
    if isnan(row["value"]):
        return ""
    value = f"{written(row['value'])}{unit}"
    return (
        value if isnan(row["low"]) else f"{value} ({written(row['low'])} to {written(row['high'])})"
    )


def headline(found: Findings, judgement: Judgement) -> str:
    """Return what the unlearned model still writes, and the verdict."""
    kept, before = (found.shares[f"remembered_{model}"] for model in ("unlearned", "original"))
    if not isnan(kept.value):
        written = (
            f"The unlearned model still writes {_share(kept)} of the chunks, the original "
            f"{_share(before)}"
        )
    elif found.longest:
        written = (
            f"The unlearned model still writes up to {found.longest['unlearned']:g} true words in "
            f"a row, the original {found.longest['original']:g}; whether that is more than chance "
            f"writes cannot be said: {kept.reason}"
        )
    else:
        written = f"What the unlearned model still writes was not measured: {kept.reason}"
    return f"{written}. {judgement.verdict.capitalize()}: {judgement.meaning}."


def _share(estimate: Estimate) -> str:
    shown = _percent(estimate._asdict())
    no_interval = isnan(estimate.low) and estimate.reason
    return f"{shown} (no interval: {estimate.reason})" if no_interval else shown
