"""Continuations: what the model that is scored writes after the beginning of each text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from detect.access import Access
from detect.evidence.evidence import Evidence
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.generation.continuations import (
    CONTINUATIONS_FILE,
    GREEDY,
    ContinuationRequest,
    read_continuations,
    request_record,
)
from detect.settings import names_all
from inject.digest import digest
from inject.step import Step, find_function

HINT = "Set detect.generate=true, or name the detector."
# Found by name, as a step's function is: what writes is no part of the code that reads.
_STEP = "detect.generation.continuations_step:continuations_step"


def lets_models_write(sources: EvidenceSources) -> bool:
    """Return whether models write: it was asked for, or every detector was chosen by its name."""
    return sources.detect.generate or not names_all(sources.detect.detectors)


@dataclass(frozen=True)
class Continuations(Need):
    """What the target writes after the beginning of each text."""

    request: ContinuationRequest = GREEDY
    """Which beginning, how many continuations, and how they are written."""
    asks_model: ClassVar[bool] = True
    access: ClassVar[Access] = Access.TEXT
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {
        CONTINUATIONS_FILE: ("beginning", "rest", "texts")
    }
    hint: ClassVar[str] = HINT
    file_hint: ClassVar[str] = "Let the model write (generate=true), or name the detector."

    def __str__(self) -> str:
        return "continuations"

    @property
    def cost(self) -> NeedCost:
        """The target writes token by token; texts of one request are written once."""
        return NeedCost("texts written", self.request.samples)

    @property
    def name(self) -> str:
        """What it is called among the inputs of the scores."""
        return f"continuations-{digest(request_record(self.request))[:12]}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether these continuations are there."""
        return self.request in evidence.continuations

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether models may write."""
        return lets_models_write(sources)

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return what the model that is scored writes."""
        step = find_function(_STEP)(
            scored.model, sources.examples, request=self.request, detect=sources.detect
        )
        return {self.name: step}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read what was written."""
        work.fields["continuations"] = {
            need.request: work.rows_of(read_continuations(work.inputs[need.name])) for need in needs
        }
