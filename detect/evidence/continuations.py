"""Continuations: what the model that is scored writes after the beginning of each text."""

from collections.abc import Sequence

from detect.evidence.needs import Continuations
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.generation.continuations import CONTINUATIONS_FILE, read_continuations, request_record
from detect.settings import names_all
from inject.digest import digest
from inject.step import Step, find_function

HINT = "Set detect.generate=true, or name the detector."
# Found by name, as a step's function is: what writes is no part of the code that reads.
_STEP = "detect.generation.continuations_step:continuations_step"


def lets_models_write(sources: EvidenceSources) -> bool:
    """Return whether models write: it was asked for, or every detector was chosen by its name."""
    return sources.detect.generate or not names_all(sources.detect.detectors)


class _ContinuationProvider(Provider[Continuations]):
    hint = HINT
    leaves = ((CONTINUATIONS_FILE, ("beginning", "rest", "texts")),)

    def available(self, sources: EvidenceSources) -> bool:
        return lets_models_write(sources)

    def inputs(
        self, need: Continuations, sources: EvidenceSources, scored: Scored
    ) -> dict[str, Step]:
        step = find_function(_STEP)(
            scored.model, sources.examples, request=need.request, detect=sources.detect
        )
        return {_name(need): step}

    def read(self, needs: Sequence[Continuations], work: Work) -> None:
        found = {}
        for need in needs:
            table = read_continuations(work.inputs[_name(need)])
            found[need.request] = [table[row.example_id] for row in work.rows]
        work.fields["continuations"] = found


CONTINUATIONS: Provider[Continuations] = _ContinuationProvider()
"""The need of continuations is met by the model that is scored, where models may write."""


def _name(need: Continuations) -> str:
    return f"continuations-{digest(request_record(need.request))[:12]}"
