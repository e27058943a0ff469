"""Every kind of need and who meets it: one table, and what meets a need in a few lines.

`PROVIDERS` says whether a need can be met with what an arm has and by which steps, `READERS` how
the finished artifacts become what detectors are given.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from detect.detector_settings import DetectorSetting
from detect.evidence import Evidence, PrefixedStatistics
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
from detect.shots import read_shots, shot_notes
from detect.token_frequency import load_frequency
from inject.examples.example import Example
from inject.step import Reading
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.choices import CHOICES, read_choices
from spikein.pipeline.steps.evidence.continuations import CONTINUATIONS, read_model_continuations
from spikein.pipeline.steps.evidence.entities import ENTITIES, read_named_entities
from spikein.pipeline.steps.evidence.gradients import GRADIENTS, read_gradients
from spikein.pipeline.steps.evidence.guesses import GUESSES, read_model_guesses
from spikein.pipeline.steps.evidence.held_out import HELD_OUT_ROWS, read_held_out_rows
from spikein.pipeline.steps.evidence.membership import SHADOWS, read_labels, read_shadows
from spikein.pipeline.steps.evidence.neighbours import NEIGHBOURS, read_neighbour_means
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.evidence.reference import REFERENCE, read_reference
from spikein.pipeline.steps.statistics import prefixed_step, statistics_step
from spikein.pipeline.steps.tuned_target import tuned_statistics_step
from spikein.store.artifact import Artifact


class _ViewProvider(Provider[View]):
    def inputs(self, need: View, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = statistics_step(
            scored.model, sources.examples, view=need.name, detect=sources.detect
        )
        return {f"view-{need.name}": step}


def _read_views(needs: Sequence[View], work: Work) -> None:
    """Read the token statistics of every view."""
    work.fields["statistics"] = {need.name: work.statistics(f"view-{need.name}") for need in needs}


class _InverseTemperatureProvider(Provider[InverseTemperature]):
    hint = "Name it among detect.inverse_temperatures, such as [0.5, 2]."

    def meets(self, need: InverseTemperature, sources: EvidenceSources) -> bool:
        return need.beta in sources.detect.inverse_temperatures


def _read_inverse_temperatures(needs: Sequence[InverseTemperature], work: Work) -> None:
    """Read nothing: the statistics of the views hold them."""


class _FrequencyProvider(Provider[Frequency]):
    hint = "Name texts to count token frequencies in (detect.frequency)."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.frequency is not None

    def inputs(self, need: Frequency, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        return {"frequency": sources.frequency} if sources.frequency else {}


def _read_frequency(needs: Sequence[Frequency], work: Work) -> None:
    """Read the counted tokens."""
    work.fields["frequency"] = load_frequency(work.inputs["frequency"].path)


class _PrefixedProvider(Provider[Prefixed]):
    hint = (
        "Shots are held-out rows (contaminants.held_out); known members are those of the split "
        "`tune` (detect.tune_share above 0)."
    )

    def meets(self, need: Prefixed, sources: EvidenceSources) -> bool:
        known = sources.detect.tune_share > 0 if need.known == "members" else sources.held_out
        return bool(known)

    def inputs(self, need: Prefixed, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = prefixed_step(scored.model, sources.examples, need, sources.detect)
        return {f"behind-{need.name}": step, f"shots-{need.name}": step.inputs["shots"]}


def _read_prefixed(needs: Sequence[Prefixed], work: Work) -> None:
    """Read the token statistics behind each choice of shots."""
    datasets = {row.dataset for row in work.rows}
    found = {}
    for need in needs:
        shots = read_shots(work.inputs[f"shots-{need.name}"].path)
        found[need.name] = PrefixedStatistics(
            statistics=work.statistics(f"behind-{need.name}"),
            notes=shot_notes(need, shots, datasets),
        )
    work.fields["prefixed"] = found
    work.fields["datasets"] = [row.dataset for row in work.rows]


class _TunedProvider(Provider[Tuned]):
    hint = "Hold rows out (contaminants.held_out), such as 40 of each dataset."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.held_out

    def inputs(self, need: Tuned, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        step = tuned_statistics_step(scored.model, sources.examples, need, sources.detect)
        return {f"tuned-{need.name}": step}


def _read_tuned(needs: Sequence[Tuned], work: Work) -> None:
    """Read the token statistics under the tuned target."""
    work.fields["tuned"] = {need.name: work.statistics(f"tuned-{need.name}") for need in needs}


PROVIDERS: Mapping[type[Need], Provider[Any]] = {
    View: _ViewProvider(),
    InverseTemperature: _InverseTemperatureProvider(),
    Reference: REFERENCE,
    Frequency: _FrequencyProvider(),
    Sides: Provider[Sides](),
    Shadows: SHADOWS,
    HeldOut: HELD_OUT_ROWS,
    Prefixed: _PrefixedProvider(),
    Tuned: _TunedProvider(),
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
    View: _read_views,
    InverseTemperature: _read_inverse_temperatures,
    Reference: read_reference,
    Frequency: _read_frequency,
    Sides: read_labels,
    Shadows: read_shadows,
    HeldOut: read_held_out_rows,
    Prefixed: _read_prefixed,
    Tuned: _read_tuned,
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
