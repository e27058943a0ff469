"""The reference model: its token statistics of the text, through its own tokenizer."""

from collections.abc import Sequence

from detect.needs import Reference
from detect.views import TEXT
from spikein.pipeline.graph import Step
from spikein.pipeline.steps.evidence.provider import (
    BASE,
    TWIN,
    EvidenceSources,
    Provider,
    Scored,
    Work,
)
from spikein.pipeline.steps.statistics import statistics_step
from spikein.pipeline.steps.training import ModelNode


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


REFERENCE: Provider[Reference] = _ReferenceProvider()
"""The need of a reference model is met by the one that `detect.reference` names."""


def reference_model(sources: EvidenceSources) -> ModelNode | None:
    """Return the model that `detect.reference` names."""
    named = sources.detect.reference
    if named in (None, BASE, TWIN):
        return {BASE: sources.base, TWIN: sources.twin}.get(str(named))
    from train.models.pretrained import model_identity

    return ModelNode(pretrained=named, identity=model_identity(str(named)))


def read_reference(needs: Sequence[Reference], work: Work) -> None:
    """Read the token statistics under the reference model."""
    work.fields["reference"] = work.statistics("reference")
