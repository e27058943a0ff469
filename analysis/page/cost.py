"""The cost of a run, and the origin of its numbers: time, code and machine.

Detectors share passes. A detector's tokens and times are of all that its scores are drawn from;
its *own* time is of what no other detector reads, which is what would be saved without it. The
last row counts each pass once.
"""

import platform
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from analysis.findings import group_by
from analysis.page.inputs import DetectorWork, EvidenceStep, PageInputs, StepRecord
from analysis.page.parts import CopyButton, Fold, Note, Part, Section, answer
from analysis.page.table import Table, facts, listing, seconds_text

_MAX_STEPS = 30
"""A longer table of steps is folded."""


class DetectorCost(NamedTuple):
    """The sum over all models that a detector scored."""

    detector: str
    cost: str
    tokens_in: int
    tokens_out: int
    seconds: float
    """Of the steps that its scores are drawn from."""
    own_seconds: float
    """Of those that no other detector reads."""
    scoring_seconds: float | None


def cost_section(steps: Sequence[StepRecord], work: Sequence[DetectorWork]) -> Section | None:
    """Return the cost of the run, by detector and by step."""
    table = listing(
        "Steps",
        ("Step", "Tokens", "Time"),
        [
            (
                step.name,
                "" if step.tokens is None else f"{step.tokens:,}",
                seconds_text(step.seconds),
            )
            for step in steps
        ],
    )
    total = seconds_text(sum(step.seconds for step in steps))
    total_sentence = f"Its steps took {total} of computing, measured when each ran."
    parts: list[Part | None] = [
        total_sentence if steps else "No costs were recorded.",
        detector_cost_listing(work),
        Fold(f"Every step: {len(steps)}", [table]) if table and len(steps) > _MAX_STEPS else table,
    ]
    return answer("cost", "Cost", "Cost", "", extra=parts)


def detector_costs(work: Sequence[DetectorWork]) -> list[DetectorCost]:
    """Return the cost of each detector, dearest first, and of all of them together."""
    by_detector = group_by(work, lambda item: item.detector)
    readers = Counter(key for own in by_detector.values() for key in _steps(own))
    costs = [_cost(detector, own, readers) for detector, own in by_detector.items()]
    costs.sort(key=lambda cost: (-cost.own_seconds, -cost.seconds, cost.detector))
    if len(costs) > 1:
        costs.append(_cost("all together", work, Counter())._replace(cost=""))
    return costs


def _steps(work: Sequence[DetectorWork]) -> dict[str, EvidenceStep]:
    return {step.key: step for item in work for step in item.steps}


def _cost(detector: str, work: Sequence[DetectorWork], readers: Counter[str]) -> DetectorCost:
    steps, scoring = _steps(work).values(), [item.scoring_seconds for item in work]
    return DetectorCost(
        detector,
        "; ".join(dict.fromkeys(item.cost for item in work)),
        tokens_in=sum(step.tokens_in or 0 for step in steps),
        tokens_out=sum(step.tokens_out or 0 for step in steps),
        seconds=sum(step.seconds for step in steps),
        own_seconds=sum(step.seconds for step in steps if readers[step.key] <= 1),
        scoring_seconds=None if None in scoring else sum(value or 0.0 for value in scoring),
    )


def detector_cost_listing(work: Sequence[DetectorWork]) -> Table | None:
    """Return the costs as a table of the page; None if nothing was scored."""
    columns = ("Passes per text", "Tokens in", "Tokens out", "All its steps", "Exclusive steps")
    return listing(
        "Cost of each detector",
        ("Detector", *columns, "Scoring"),
        [
            (
                cost.detector,
                cost.cost,
                f"{cost.tokens_in:,}" if cost.tokens_in else "",
                f"{cost.tokens_out:,}" if cost.tokens_out else "",
                seconds_text(cost.seconds) if cost.seconds else "",
                seconds_text(cost.own_seconds) if cost.own_seconds else "",
                "" if cost.scoring_seconds is None else seconds_text(cost.scoring_seconds),
            )
            for cost in detector_costs(work)
        ],
        "Over all scored models, controls included; most expensive first. Steps "
        "that several detectors read ran once: 'all its steps' counts them for "
        "each of these detectors, 'exclusive steps' are read by no other detector, and "
        "the last row counts every step once. Tokens are scored tokens and tokens of prompts "
        "and answers; the time includes training models for a detector. Scoring: from stored "
        "evidence to scores, all settings.",
    )


def provenance_section(inputs: PageInputs) -> Section | None:
    """Return the provenance of the numbers, and their experiment."""
    yaml = inputs.experiment_yaml
    experiment = CopyButton("experiment-file", "Copy the file", [yaml], verbatim=True)
    parts: list[Part] = [
        facts("", provenance(inputs)),
        Fold("The experiment, resolved", [experiment]),
        Note(
            "AUC: rank AUC, ties as half. Its intervals: influence values summed by group, "
            "logit scale, Student's t; from three training seeds on they apply to any seed. "
            "All numbers come from the test split.",
            "how",
        ),
    ]
    return answer("provenance", "Provenance", "Provenance", "", extra=parts)


def provenance(inputs: PageInputs) -> list[tuple[str, str]]:
    """Return times, versions, machines and digests by name."""
    steps, artifacts = inputs.steps, inputs.artifacts
    created = sorted(step.created.replace("T", " ").replace("+00:00", " UTC") for step in steps)
    return [
        ("Steps computed", " to ".join(dict.fromkeys(created[:1] + created[-1:]))),
        ("Page made by spikein", inputs.code),
        ("Computed by spikein", _count_steps([step.code for step in steps])),
        ("Computed on", _count_steps([step.machine for step in steps])),
        ("Python of the page", platform.python_version()),
        *inputs.libraries.items(),
        *((step.name, f"{step.digest[:12]} · content {step.content[:12]}") for step in artifacts),
    ]


def _count_steps(values: Sequence[str | None]) -> str:
    """Return a value of the steps; if it varies, each with its number of steps."""
    counts = Counter(value or "not recorded" for value in values)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{text} ({count} of {len(values)} steps)" for text, count in counts.items())
