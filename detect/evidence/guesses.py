"""Guesses of masked words by the model that is scored, and the models that choose the words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from detect.evidence.continuations import HINT, lets_models_write
from detect.evidence.needs import Guesses
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.evidence.reference import pretrained_node, reference_model
from detect.generation.guesses import GUESSES_FILE, read_guesses, request_record
from inject.digest import digest
from inject.step import Step, find_function

if TYPE_CHECKING:
    from train.models.model_node import ModelNode

# Found by name, as a step's function is: what guesses is no part of the code that reads.
_GUESSES_STEP = "detect.generation.guesses_step:guesses_step"
_WORDS_STEP = "detect.generation.words_step:words_step"


class _GuessProvider(Provider[Guesses]):
    hint = (
        f"{HINT} Name a model that says which words surprise (detect.word_reference, or "
        "detect.reference) and, for filtered=true, one whose guesses are left out "
        "(detect.knowledge_filter)."
    )
    leaves = ((GUESSES_FILE, ("wanted", "written")),)

    def available(self, sources: EvidenceSources) -> bool:
        return lets_models_write(sources)

    def meets(self, need: Guesses, sources: EvidenceSources) -> bool:
        request = need.request
        return (
            self.available(sources)
            and (not request.asks_reference or _word_reference(sources) is not None)
            and (not request.filtered or sources.detect.knowledge_filter is not None)
        )

    def inputs(self, need: Guesses, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        request, detect = need.request, sources.detect
        guesses_step = find_function(_GUESSES_STEP)
        before: dict[str, Step] = {}
        if request.asks_reference:
            reference = _word_reference(sources)
            if reference is None:
                raise TypeError("words without a reference model")
            before["words"] = find_function(_WORDS_STEP)(reference, sources.examples, detect)
        if request.filtered:
            other = pretrained_node(detect.knowledge_filter or "")
            before |= {
                name: guesses_step(
                    other,
                    sources.examples,
                    request=replace(request, prompt=name, filtered=False),
                    detect=detect,
                    before=dict(before),
                )
                for name in ("filter", "filter_100")
            }
        step = guesses_step(
            scored.model, sources.examples, request=request, detect=detect, before=before
        )
        return {_name(need): step}

    def read(self, needs: Sequence[Guesses], work: Work) -> None:
        found = {}
        for need in needs:
            table = read_guesses(work.inputs[_name(need)])
            found[need.request] = [table[row.example_id] for row in work.rows]
        work.fields["guesses"] = found


GUESSES: Provider[Guesses] = _GuessProvider()
"""The need of guesses is met by the model that is scored, where models may write."""


def _word_reference(sources: EvidenceSources) -> "ModelNode | None":
    """Return the model that says which words surprise."""
    named = sources.detect.word_reference
    return reference_model(sources) if named is None else pretrained_node(named)


def _name(need: Guesses) -> str:
    return f"guesses-{digest(request_record(need.request))[:12]}"
