"""Guesses of masked words by the model that is scored, and the models that choose the words."""

from collections.abc import Sequence
from dataclasses import replace

from detect.generation.guesses import read_guesses, request_record
from detect.generation.guesses_step import guesses_step
from detect.generation.words_step import words_step
from detect.needs import Guesses
from inject.digest import digest
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.continuations import HINT, lets_models_write
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.evidence.reference import reference_model
from spikein.pipeline.steps.training import ModelNode


class _GuessProvider(Provider[Guesses]):
    hint = (
        f"{HINT} Name a model that says which words surprise (detect.word_reference, or "
        "detect.reference) and, for filtered=true, one whose guesses are left out "
        "(detect.knowledge_filter)."
    )

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
        before: dict[str, Step] = {}
        if request.asks_reference:
            reference = _word_reference(sources)
            if reference is None:
                raise TypeError("words without a reference model")
            before["words"] = words_step(reference, sources.examples, detect)
        if request.filtered:
            other = _named(detect.knowledge_filter or "")
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


GUESSES: Provider[Guesses] = _GuessProvider()
"""The need of guesses is met by the model that is scored, where models may write."""


def read_model_guesses(needs: Sequence[Guesses], work: Work) -> None:
    """Read what the model guessed."""
    found = {}
    for need in needs:
        table = read_guesses(work.inputs[_name(need)].path)
        found[need.request] = [table[row.example_id] for row in work.rows]
    work.fields["guesses"] = found


def _word_reference(sources: EvidenceSources) -> ModelNode | None:
    """Return the model that says which words surprise."""
    named = sources.detect.word_reference
    return reference_model(sources) if named is None else _named(named)


def _named(path_or_id: str) -> ModelNode:
    from train.models.pretrained import model_identity

    return ModelNode(pretrained=path_or_id, identity=model_identity(path_or_id))


def _name(need: Guesses) -> str:
    return f"guesses-{digest(request_record(need.request))[:12]}"
