"""Guesses of masked words by the scored model, and the models that select the words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from detect.access import Access
from detect.evidence.continuations import HINT, allows_generation
from detect.evidence.evidence import Evidence
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.evidence.views import further_model, has_reference, reference_model
from detect.generation.guesses import (
    GUESSES_FILE,
    PAPER,
    GuessRequest,
    read_guesses,
    request_record,
)
from detect.target_identity import AnyModel, asking_step
from inject.digest import digest
from inject.examples.example import TEXTS, UNSPLIT
from inject.step import Step


@dataclass(frozen=True)
class Guesses(Need):
    """The target's answers for masked parts of each text."""

    request: GuessRequest = PAPER
    """The masked parts, and the prompt."""
    access: ClassVar[Access] = Access.TEXT
    parts: ClassVar[Mapping[str, str]] = {"guesses": r"guesses-.*"}
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {GUESSES_FILE: ("wanted", "written")}
    hint: ClassVar[str] = (
        f"{HINT} Name a model that finds surprising words (detect.word_reference, or "
        "detect.reference) and, for filtered=true, one whose guesses are skipped "
        "(detect.knowledge_filter)."
    )
    file_hint: ClassVar[str] = (
        "Let the model write (generate=true, or name the detector), and name a model that finds "
        "surprising words (word_reference=PATH or reference=PATH) and, for filtered=true, one "
        "whose guesses are skipped (knowledge_filter=PATH)."
    )
    options: ClassVar[tuple[str, ...]] = ("word_reference", "knowledge_filter")

    def __str__(self) -> str:
        return "guesses of masked words"

    @property
    def cost(self) -> NeedCost:
        """One answer per masked part."""
        parts = 1 if self.request.method in ("question", "option") else self.request.limit
        return "answers, at most", parts

    @property
    def name(self) -> str:
        """Its name among the inputs of the scores."""
        return f"guesses-{digest(request_record(self.request))[:12]}"

    def met_by(self, evidence: Evidence) -> bool:
        """Return whether these guesses are present."""
        return self.request in evidence.guesses

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether generation is allowed and the models that select the words are named."""
        request, named = self.request, sources.detect.word_reference is not None
        return (
            allows_generation(sources)
            and (not request.asks_reference or named or has_reference(sources))
            and (not request.filtered or sources.detect.knowledge_filter is not None)
        )

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return the scored model's guesses of words that other models selected."""
        request, detect = self.request, sources.detect
        before: dict[str, Step] = {}
        if request.asks_reference:
            reference = _word_reference(sources)
            if reference is None:
                raise TypeError("words without a reference model")
            before["words"] = asking_step(
                reference,
                detect,
                kind="words",
                label=reference.label,
                function="detect.generation.word_statistics:build",
                settings={},
                inputs={"examples": sources.examples},
                libraries=("unicode",),
                reads={"examples": TEXTS},
            )
        if request.filtered:
            other = further_model(detect.knowledge_filter or "", sources)
            before |= {
                name: self._step(
                    other, replace(request, prompt=name, filtered=False), sources, dict(before)
                )
                for name in ("filter", "filter_100")
            }
        return {self.name: self._step(scored.model, request, sources, before)}

    def _step(
        self,
        model: AnyModel,
        request: GuessRequest,
        sources: EvidenceSources,
        before: Mapping[str, Step],
    ) -> Step:
        """Query one model for the masked parts of every example.

        Args:
            model: the model to query.
            request: the masked parts, and the prompt.
            sources: sources of the examples, and settings for loading a model.
            before: `words` if a reference model selects them; `filter` and `filter_100`, the
                guesses of a knowledge filter, if there is one.
        """
        return asking_step(
            model,
            sources.detect,
            kind="guesses",
            label=f"{request.method}-{model.label}",
            function="detect.generation.guesses_step:build",
            settings={"request": request_record(request)},
            inputs={"examples": sources.examples, **before},
            libraries=("unicode",),
            reads={"examples": UNSPLIT},
        )

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the guesses."""
        work.fields["guesses"] = {
            need.request: work.rows_of(read_guesses(work.inputs[need.name])) for need in needs
        }


def _word_reference(sources: EvidenceSources) -> "AnyModel | None":
    """Return the model that finds surprising words."""
    named = sources.detect.word_reference
    return reference_model(sources) if named is None else further_model(named, sources)
