"""Continuations: what the model that is scored writes after the beginning of each text."""

from collections.abc import Sequence

from detect.detector_settings import names_all
from detect.generation.continuations import read_continuations, request_record
from detect.generation.continuations_step import continuations_step
from detect.needs import Continuations
from inject.digest import digest
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work

HINT = "Set detect.generate=true, or name the detector."


def lets_models_write(sources: EvidenceSources) -> bool:
    """Return whether models write: it was asked for, or every detector was chosen by its name."""
    return sources.detect.generate or not names_all(sources.detect.detectors)


class _ContinuationProvider(Provider[Continuations]):
    hint = HINT

    def available(self, sources: EvidenceSources) -> bool:
        return lets_models_write(sources)

    def inputs(
        self, need: Continuations, sources: EvidenceSources, scored: Scored
    ) -> dict[str, Step]:
        step = continuations_step(
            scored.model, sources.examples, request=need.request, detect=sources.detect
        )
        return {_name(need): step}


CONTINUATIONS: Provider[Continuations] = _ContinuationProvider()
"""The need of continuations is met by the model that is scored, where models may write."""


def read_model_continuations(needs: Sequence[Continuations], work: Work) -> None:
    """Read what the model wrote."""
    found = {}
    for need in needs:
        table = read_continuations(work.inputs[_name(need)].path)
        found[need.request] = [table[row.example_id] for row in work.rows]
    work.fields["continuations"] = found


def _name(need: Continuations) -> str:
    return f"continuations-{digest(request_record(need.request))[:12]}"
