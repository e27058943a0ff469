"""Every kind of need and who meets it: the one table of this folder.

`PROVIDERS` says whether a need can be met with what an arm has and by which steps, `READERS` how
the finished artifacts become what detectors are given.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from detect.detector_settings import DetectorSetting
from detect.evidence import Evidence
from detect.needs import (
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
from inject.examples.example import Example
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.choices import CHOICES, read_choices
from spikein.pipeline.steps.evidence.continuations import CONTINUATIONS, read_model_continuations
from spikein.pipeline.steps.evidence.entities import ENTITIES, read_named_entities
from spikein.pipeline.steps.evidence.frequency import FREQUENCY, read_frequency
from spikein.pipeline.steps.evidence.gradients import GRADIENTS, read_gradients
from spikein.pipeline.steps.evidence.guesses import GUESSES, read_model_guesses
from spikein.pipeline.steps.evidence.held_out import HELD_OUT_ROWS, read_held_out_rows
from spikein.pipeline.steps.evidence.labels import read_labels
from spikein.pipeline.steps.evidence.neighbours import NEIGHBOURS, read_neighbour_means
from spikein.pipeline.steps.evidence.prefixed import PREFIXED, read_prefixed
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.evidence.reference import REFERENCE, read_reference
from spikein.pipeline.steps.evidence.shadows import SHADOWS, read_shadows
from spikein.pipeline.steps.evidence.tuned import TUNED, read_tuned
from spikein.pipeline.steps.evidence.views import (
    INVERSE_TEMPERATURES,
    VIEWS,
    read_inverse_temperatures,
    read_views,
)
from spikein.store.artifact import Artifact
from spikein.store.manifest import Reading

PROVIDERS: Mapping[type[Need], Provider[Any]] = {
    View: VIEWS,
    InverseTemperature: INVERSE_TEMPERATURES,
    Reference: REFERENCE,
    Frequency: FREQUENCY,
    Sides: Provider[Sides](),
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

# Apart from `PROVIDERS`, so that the code which makes statistics is no part of the code that reads
# them: an edit there makes the scores anew through the statistics, if those come out otherwise.
READERS: Mapping[type[Need], Callable[[Any, Work], None]] = {
    View: read_views,
    InverseTemperature: read_inverse_temperatures,
    Reference: read_reference,
    Frequency: read_frequency,
    Sides: read_labels,
    Shadows: read_shadows,
    HeldOut: read_held_out_rows,
    Prefixed: read_prefixed,
    Tuned: read_tuned,
    Continuations: read_model_continuations,
    Guesses: read_model_guesses,
    Choices: read_choices,
    Gradients: read_gradients,
    NeighbourTexts: read_neighbour_means,
    Entities: read_named_entities,
}


def unmet(sources: EvidenceSources) -> Callable[[Need], str | None]:
    """Return a function from a need to what can be done about it; None where it can be met."""

    def hint(need: Need) -> str | None:
        provider = PROVIDERS[type(need)]
        return None if provider.meets(need, sources) else provider.hint

    return hint


def says_something(setting: DetectorSetting, sources: EvidenceSources, scored: Scored) -> bool:
    """Return whether a detector with a choice of its parameters says anything about a model.

    One that looks at no model is scored once: beside the base model where there is one.
    """
    if not any(need.asks_model for need in setting.needs):
        if scored.role == "base":
            return True
        alone = sources.base is None and scored.model.checkpoint is None
        return scored.role == "arm" and alone
    return all(PROVIDERS[type(need)].says_something(sources, scored) for need in setting.needs)


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
    needs: Sequence[Need], inputs: Mapping[str, Artifact], rows: Sequence[Example]
) -> Evidence:
    """Return the evidence that finished steps hold, one entry a row of the examples."""
    work = Work(inputs=inputs, rows=rows)
    for kind, read in READERS.items():
        if asked := [need for need in needs if isinstance(need, kind)]:
            read(asked, work)
    return Evidence(**{"texts": [row.text for row in rows], "statistics": {}, **work.fields})
