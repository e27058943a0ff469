"""What each detector cost in this run: passes of models, tokens, seconds.

Detectors share passes. A detector's tokens and times are of all that its scores are drawn from;
its *own* time is of what no other detector reads, which is what would be saved without it. The
last row counts each pass once.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.page.tables.listing import Listing, listing, seconds_text


@dataclass(frozen=True, kw_only=True)
class EvidenceStep:
    """One step that detectors' scores are drawn from."""

    key: str
    """The same step has the same key wherever it stands."""
    seconds: float
    """When it was computed."""
    tokens_in: int | None = None
    """Tokens scored, or of prompts; None where the step asked no model, or did not count."""
    tokens_out: int | None = None
    """Tokens that a model wrote."""


@dataclass(frozen=True, kw_only=True)
class DetectorWork:
    """What one detector's scores of one model are drawn from."""

    detector: str
    cost: str
    """Passes over each text, as the detector's needs declare it."""
    steps: tuple[EvidenceStep, ...]
    scoring_seconds: float | None
    """From evidence to scores, all its settings; None where it was not recorded."""


@dataclass(frozen=True, kw_only=True)
class DetectorCost:
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


def detector_costs(work: Sequence[DetectorWork]) -> list[DetectorCost]:
    """Return the cost of each detector, dearest first, and of all of them together."""
    read: dict[str, dict[str, EvidenceStep]] = {}
    scoring: dict[str, float | None] = {}
    costs: dict[str, dict[str, None]] = {}
    for one in work:
        read.setdefault(one.detector, {}).update({step.key: step for step in one.steps})
        costs.setdefault(one.detector, {})[one.cost] = None
        before, more = scoring.get(one.detector, 0.0), one.scoring_seconds
        scoring[one.detector] = None if before is None or more is None else before + more
    readers = Counter(key for steps in read.values() for key in steps)
    found = [
        _sum(
            detector,
            "; ".join(costs[detector]),
            list(steps.values()),
            own=sum(step.seconds for step in steps.values() if readers[step.key] == 1),
            scoring=scoring[detector],
        )
        for detector, steps in read.items()
    ]
    found.sort(key=lambda one: (-one.own_seconds, -one.seconds, one.detector))
    if len(found) > 1:
        every = {key: step for steps in read.values() for key, step in steps.items()}
        seconds = [one.scoring_seconds for one in found]
        total = None if None in seconds else sum(value or 0.0 for value in seconds)
        whole = _sum("all together", "", list(every.values()), own=None, scoring=total)
        found.append(whole)
    return found


def detector_cost_listing(work: Sequence[DetectorWork]) -> Listing | None:
    """Return the costs as a table of the page; None where nothing was scored."""
    return listing(
        "What each detector cost",
        (
            "Detector",
            "Passes a text",
            "Tokens in",
            "Tokens out",
            "Time of its steps",
            "Its own steps",
            "Scoring",
        ),
        [
            (
                one.detector,
                one.cost,
                f"{one.tokens_in:,}" if one.tokens_in else "",
                f"{one.tokens_out:,}" if one.tokens_out else "",
                seconds_text(one.seconds) if one.seconds else "",
                seconds_text(one.own_seconds) if one.own_seconds else "",
                "" if one.scoring_seconds is None else seconds_text(one.scoring_seconds),
            )
            for one in detector_costs(work)
        ],
        "Over all models that were scored, those of controls included; dearest first. Steps that "
        "several detectors read were made once: 'time of its steps' counts them for each of "
        "their detectors, 'its own steps' are those that no other detector reads, and the last "
        "row counts every step once. Tokens are those scored, and those of prompts and answers; "
        "models that are trained for a detector count in its time. Scoring: from stored evidence "
        "to scores, all settings.",
    )


def _sum(
    detector: str,
    cost: str,
    steps: Sequence[EvidenceStep],
    *,
    own: float | None,
    scoring: float | None,
) -> DetectorCost:
    seconds = sum(step.seconds for step in steps)
    return DetectorCost(
        detector=detector,
        cost=cost,
        tokens_in=sum(step.tokens_in or 0 for step in steps),
        tokens_out=sum(step.tokens_out or 0 for step in steps),
        seconds=seconds,
        own_seconds=seconds if own is None else own,
        scoring_seconds=scoring,
    )
