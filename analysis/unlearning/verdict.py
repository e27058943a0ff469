"""The verdict: is an unlearned model closer to the retrained model than to the original?

Declared beforehand, so that nobody picks the measure that flatters: the AUC of `loss` and of
`min_k`, exact memorisation, extraction strength and the log-probability of the forget set say where
the model stands (`analysis.unlearning.position`); retained text, general text and accuracy
on retained questions say what it cost. By the whole interval of the position:

| interval | verdict |
|---|---|
| above 0.5 | closer to the original |
| within -0.5 and 0.5 | closer to the retrained; *beyond the retrained* where it lies below 0 |
| below 0 otherwise | beyond the retrained: over-forgotten |
| below -0.5 | the mirror of the original: as easily told, from the other side |
| else, or none | cannot be told |

Utility is the difference to the retrained model, and to the original: *lost* where its interval
lies below minus the margin, *kept* where it lies above, else it cannot be told. A model that has
lost some against both is ruined, whatever it forgot: what the original lacked already was not lost
by forgetting, and what the retrained model lacks too is no loss. Since both must say so, a sound
model is called ruined no more often than by either alone. One without a value is diverged. Each
interval holds for itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np

from analysis.arm import MODEL_FREE, axis_column
from analysis.copy_bins import EVERY_MEMBER
from analysis.intervals.numbers import Numbers
from analysis.unlearning.auc_measures import cohort_aucs, on_shared_rows, scores_of
from analysis.unlearning.evidence import NO_METHOD, ORIGINAL, RETRAINED, Cohort, ModelKey
from analysis.unlearning.numbers import NO_DETECTOR
from analysis.unlearning.position import Position, find_gap, find_position
from analysis.unlearning.settings import MeasureSettings
from analysis.unlearning.text_measures import (
    EXACT_MEMORISATION,
    EXTRACTION_STRENGTH,
    FORGET_LOG_PROBABILITY,
    GENERAL,
    RETAIN_ACCURACY,
    RETAIN_LOG_PROBABILITY,
    TextMeasure,
    general_numbers,
    text_numbers,
    values_of,
)

DETECTORS = ("loss", "min_k")
TEXTS = (EXACT_MEMORISATION, EXTRACTION_STRENGTH, FORGET_LOG_PROBABILITY)
ALL = "all"


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


def verdict_rows(
    cohort: Cohort, settings: MeasureSettings, *, confidence: float
) -> list[dict[str, Any]]:
    """Return the rows of the question `verdict`: of each method its measures, then `all`."""
    rows = []
    for key in cohort.keys:
        if key.method == NO_METHOD:
            continue
        findings = find_verdict(cohort, key, settings, confidence=confidence)
        overall = overall_verdict(findings)
        sentence = verdict_sentence(key.method, overall, findings, diverged_seeds(cohort, key))
        last = Finding(measure=ALL, kind=ALL, verdict=overall, note=sentence)
        head = {axis_column(name): value for name, value in cohort.axes.items()}
        rows += [{**head, "method": key.method, **vars(one)} for one in (*findings, last)]
    return rows


def diverged_seeds(cohort: Cohort, key: ModelKey) -> list[int]:
    """Return the seeds in which a model has no finite score of any text of the forget set."""
    found = []
    for rows, models in zip(cohort.rows, cohort.models, strict=True):
        scores = models[key].scores if key in models else {}
        every = [values for name, values in scores.items() if name not in MODEL_FREE]
        if every and not any(np.isfinite(one[rows.forget]).any() for one in every):
            found.append(rows.seed)
    return found


def find_verdict(
    cohort: Cohort, key: ModelKey, settings: MeasureSettings, *, confidence: float
) -> list[Finding]:
    """Return what every declared measure that was taken says of one method."""
    keys = (key, RETRAINED, ORIGINAL)
    seeds = sum(key in models for models in cohort.models)
    dead = len(diverged_seeds(cohort, key)) == seeds
    found = []
    for detector in DETECTORS:
        scores = [scores_of(cohort, one, detector) for one in keys]
        if all(any(one is not None for one in of_model) for of_model in scores):
            numbers = [
                cohort_aucs(cohort, of_model, [EVERY_MEMBER])
                for of_model in on_shared_rows(cohort, *scores)
            ]
            place = find_position(*numbers, confidence=confidence)
            found.append(_of_position("auc", detector, place, dead=dead))
    for asked in TEXTS:
        models = _texts_of(cohort, keys, asked)
        if models is not None:
            place = find_position(*models, confidence=confidence)
            found.append(_of_position(asked.name, NO_DETECTOR, place, dead=dead))
    for asked, margin in (
        (RETAIN_LOG_PROBABILITY, settings.utility_margin),
        (RETAIN_ACCURACY, settings.accuracy_margin),
    ):
        for other in (RETRAINED, ORIGINAL):
            pair = _texts_of(cohort, (key, other), asked)
            if pair is not None:
                gap = find_gap(*pair, confidence=confidence)
                found.append(_of_gap(asked.name, other, gap, margin, dead=dead))
    if any(key in models and models[key].general is not None for models in cohort.models):
        for other in (RETRAINED, ORIGINAL):
            general = general_numbers(cohort, [key, other])
            gap = find_gap(general[0], general[1], confidence=confidence)
            found.append(_of_gap(GENERAL, other, gap, settings.utility_margin, dead=dead))
    return found


def _texts_of(cohort: Cohort, keys: Sequence[ModelKey], asked: TextMeasure) -> list[Numbers] | None:
    """Return a measure of each model on the rows that all have; None where one has none."""
    values = [values_of(cohort, one, asked) for one in keys]
    if any(all(one is None for one in of_model) for of_model in values):
        return None
    return [text_numbers(cohort, shared, asked) for shared in on_shared_rows(cohort, *values)]


def _of_position(measure: str, detector: str, place: Position, *, dead: bool) -> Finding:
    verdict = "diverged" if dead and not place.seeds else position_verdict(place)
    return Finding(
        measure=measure,
        detector=detector,
        kind="forgetting",
        verdict=verdict,
        **place._asdict(),
    )


def position_verdict(place: Position) -> str:
    """Return what the interval of a position says; see the module."""
    if isnan(place.low):
        return "cannot be told"
    if place.low > 0.5:
        return "closer to the original"
    if place.high < -0.5:
        return "mirror of the original"
    if place.high < 0:
        return "beyond the retrained"
    if place.low > -0.5 and place.high < 0.5:
        return "closer to the retrained"
    return "cannot be told"


def _of_gap(measure: str, other: ModelKey, gap: Position, margin: float, *, dead: bool) -> Finding:
    if not gap.seeds and dead:
        verdict = "diverged"
    elif isnan(gap.low):
        verdict = "cannot be told"
    elif gap.high < -margin:
        verdict = "lost"
    else:
        verdict = "kept" if gap.low > -margin else "cannot be told"
    note = "; ".join(part for part in (f"margin {margin:g}", gap.note) if part)
    return Finding(
        measure=f"{measure}_difference",
        versus=other.model,
        kind="utility",
        verdict=verdict,
        **gap._replace(note=note)._asdict(),
    )


def overall_verdict(findings: Sequence[Finding]) -> str:
    """Return one verdict of all measures."""
    if any(one.verdict == "diverged" for one in findings):
        return "diverged"
    utility: dict[str, set[str]] = {}
    for one in findings:
        if one.kind == "utility":
            utility.setdefault(one.measure, set()).add(one.verdict)
    if any(said == {"lost"} for said in utility.values()):
        return "ruined"
    told = {one.verdict for one in findings if one.kind == "forgetting"} - {"cannot be told"}
    if not told:
        return "cannot be told"
    if len(told) == 1:
        return told.pop()
    if "closer to the original" not in told:
        return "beyond the retrained"
    return "the measures disagree"


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
