"""Continuations: texts that the scored model writes after the beginning of each text."""

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
from detect.settings import DetectSettings, names_all
from detect.target_identity import AnyModel, asking_step
from inject.digest import digest
from inject.examples.example import TEXTS, UNSPLIT
from inject.step import Step

HINT = "Set detect.generate=true, or name the detector."
_BUILD = "detect.generation.continuations_step:build"


def allows_generation(sources: EvidenceSources) -> bool:
    """Return whether generation is allowed: by the setting, or because every detector is named."""
    return sources.detect.generate or not names_all(sources.detect.detectors)


@dataclass(frozen=True)
class Continuations(Need):
    """Texts that the target writes after the beginning of each text."""

    request: ContinuationRequest = GREEDY
    """The beginning, the number of continuations, and their sampling."""
    access: ClassVar[Access] = Access.TEXT
    parts: ClassVar[Mapping[str, str]] = {"continuations": r"continuations-.*"}
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {
        CONTINUATIONS_FILE: ("beginning", "rest", "texts")
    }
    hint: ClassVar[str] = HINT
    file_hint: ClassVar[str] = "Let the model write (generate=true), or name the detector."

    def __str__(self) -> str:
        return "continuations"

    @property
    def cost(self) -> NeedCost:
        """The target writes token by token; texts of one request are generated once."""
        return "texts written", self.request.samples

    @property
    def name(self) -> str:
        """Its name among the inputs of the scores."""
        return f"continuations-{digest(request_record(self.request))[:12]}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether these continuations are present."""
        return self.request in evidence.continuations

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether generation is allowed."""
        return allows_generation(sources)

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the continuations by the scored model."""
        step = asking_step(
            scored.model,
            sources.detect,
            kind="continuations",
            label=f"{self.request.samples}-{scored.model.label}",
            function=_BUILD,
            settings={"request": request_record(self.request)},
            inputs={"examples": sources.examples},
            reads={"examples": TEXTS},
        )
        return {self.name: step}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the continuations."""
        work.fields["continuations"] = {
            need.request: work.rows_of(read_continuations(work.inputs[need.name])) for need in needs
        }


def forgotten_continuations_step(
    model: AnyModel,
    examples: Step,
    membership: Step,
    *,
    request: ContinuationRequest,
    detect: DetectSettings,
) -> Step:
    """Let one model continue the forgotten texts, which the retrained model never sees.

    Args:
        model: the model to query.
        examples: the arm's pool.
        membership: the same pool with the retrained model's sides.
        request: the beginnings, and the sampling.
        detect: settings for querying models.
    """
    return asking_step(
        model,
        detect,
        kind="forgotten_continuations",
        label=f"{request.samples}-{model.label}",
        function=f"{_BUILD}_forgotten",
        settings={"request": request_record(request)},
        inputs={"examples": examples, "membership": membership},
        reads={"examples": UNSPLIT, "membership": UNSPLIT},
    )
