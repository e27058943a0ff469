"""The reference model: its token statistics of the text, through its own tokenizer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detect.evidence.needs import Reference
from detect.evidence.provider import BASE, TWIN, EvidenceSources, Provider, Scored, Work
from detect.evidence.views import statistics_step
from detect.views import TEXT
from inject.step import Step, find_function

if TYPE_CHECKING:
    from train.models.model_node import ModelNode


class _ReferenceProvider(Provider[Reference]):
    hint = "Name a reference model (detect.reference)."

    def available(self, sources: EvidenceSources) -> bool:
        return reference_model(sources) is not None

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        named = sources.detect.reference
        if scored.role == "base":
            return named not in (None, BASE, TWIN)
        # The clean twin was trained to the end: beside a model on the way it shows time, too.
        return named != TWIN or (scored.role != "clean" and scored.model.checkpoint is None)

    def inputs(self, need: Reference, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        other = reference_model(sources)
        if other is None:
            raise TypeError("a reference detector without a reference model")
        return {
            "reference": statistics_step(other, sources.examples, view=TEXT, detect=sources.detect)
        }

    def read(self, needs: Sequence[Reference], work: Work) -> None:
        work.fields["reference"] = work.statistics("reference")


REFERENCE: Provider[Reference] = _ReferenceProvider()
"""The need of a reference model is met by the one that `detect.reference` names."""


def reference_model(sources: EvidenceSources) -> "ModelNode | None":
    """Return the model that `detect.reference` names."""
    named = sources.detect.reference
    if named in (None, BASE, TWIN):
        return {BASE: sources.base, TWIN: sources.twin}.get(str(named))
    return pretrained_node(str(named))


def pretrained_node(path_or_id: str) -> "ModelNode":
    """Return a pretrained model, named by its content; a step's input or settings say which."""
    # Found by name: how models are named and loaded is no part of the code that reads scores.
    node: ModelNode = find_function("train.models.model_node:pretrained_node")(path_or_id)
    return node
