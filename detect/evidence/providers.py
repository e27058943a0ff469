"""Every kind of need and who meets it, in one table: whether it can be met with what an arm has, by
which steps, and how the finished artifacts become what detectors are given."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from detect.evidence.choices import CHOICES
from detect.evidence.continuations import CONTINUATIONS
from detect.evidence.entities import ENTITIES
from detect.evidence.evidence import Evidence
from detect.evidence.frequency import FREQUENCY
from detect.evidence.gradients import GRADIENTS
from detect.evidence.guesses import GUESSES
from detect.evidence.held_out import HELD_OUT_ROWS
from detect.evidence.membership import SHADOWS, SIDES
from detect.evidence.needs import (
    Choices,
    Continuations,
    Entities,
    Frequency,
    Gradients,
    Guesses,
    HeldOut,
    InverseTemperature,
    Need,
    NeighbourTexts,
    Prefixed,
    Reference,
    Shadows,
    Sides,
    Tuned,
    View,
)
from detect.evidence.neighbours import NEIGHBOURS
from detect.evidence.prefixed import PREFIXED
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.evidence.reference import REFERENCE
from detect.evidence.tuned import TUNED
from detect.evidence.views import INVERSE_TEMPERATURES, VIEWS
from inject.examples.example import Example
from inject.step import Reading, Step

PROVIDERS: Mapping[type[Need], Provider[Any]] = {
    View: VIEWS,
    InverseTemperature: INVERSE_TEMPERATURES,
    Reference: REFERENCE,
    Frequency: FREQUENCY,
    Sides: SIDES,
    Shadows: SHADOWS,
    HeldOut: HELD_OUT_ROWS,
    Prefixed: PREFIXED,
    Tuned: TUNED,
    Continuations: CONTINUATIONS,
    Guesses: GUESSES,
    Choices: CHOICES,
    Gradients: GRADIENTS,
    NeighbourTexts: NEIGHBOURS,
    Entities: ENTITIES,
}


def unmet(sources: EvidenceSources) -> Callable[[Need], str | None]:
    """Return a function from a need to what can be done about it; None where it can be met."""

    def hint(need: Need) -> str | None:
        provider = PROVIDERS[type(need)]
        return None if provider.meets(need, sources) else provider.hint

    return hint


def says_something(needs: Sequence[Need], sources: EvidenceSources, scored: Scored) -> bool:
    """Return whether a detector with such needs says anything about a model.

    One that looks at no model is scored once: beside the base model where there is one.
    """
    if not any(need.asks_model for need in needs):
        if scored.role == "base":
            return True
        alone = sources.base is None and scored.model.checkpoint is None
        return scored.role == "arm" and alone
    return all(PROVIDERS[type(need)].says_something(sources, scored) for need in needs)


def evidence_inputs(
    needs: Sequence[Need], sources: EvidenceSources, scored: Scored
) -> tuple[dict[str, Step], dict[str, Reading]]:
    """Return the steps that meet the needs, by name, and what is read of those not read whole."""
    inputs: dict[str, Step] = {}
    reads: dict[str, Reading] = {}
    for need in needs:
        provider = PROVIDERS[type(need)]
        for name, step in provider.inputs(need, sources, scored).items():
            inputs[name] = step
            if (read := provider.reads(name)) is not None:
                reads[name] = read
    return inputs, reads


def read_evidence(
    needs: Sequence[Need], inputs: Mapping[str, Path], rows: Sequence[Example]
) -> Evidence:
    """Return the evidence that finished steps hold, one entry a row of the examples."""
    work = Work(inputs=inputs, rows=rows)
    for kind, provider in PROVIDERS.items():
        if asked := [need for need in needs if isinstance(need, kind)]:
            provider.read(asked, work)
    return Evidence(**{"texts": [row.text for row in rows], "statistics": {}, **work.fields})
