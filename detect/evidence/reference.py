"""The reference model: its token statistics of the text, through its own tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from detect.access import Access
from detect.evidence.needs import BASE, TWIN, EvidenceSources, Need, NeedCost, Scored, Work
from detect.evidence.views import statistics_step
from detect.views import TEXT
from inject.step import Step, find_function

if TYPE_CHECKING:
    from train.models.model_node import ModelNode


@dataclass(frozen=True)
class Reference(Need):
    """Token statistics of the text under a reference model with its own tokenizer."""

    asks_model: ClassVar[bool] = True
    evidence: ClassVar[str | None] = "reference"
    access: ClassVar[Access] = Access.NONE
    hint: ClassVar[str] = "Name a reference model (detect.reference)."
    file_hint: ClassVar[str] = "Name a reference model (reference=PATH)."
    options: ClassVar[tuple[str, ...]] = ("reference",)

    def __str__(self) -> str:
        return "reference model"

    @property
    def cost(self) -> NeedCost:
        """The reference model reads the text once."""
        return NeedCost("reference", 1)

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether `detect.reference` names a model."""
        return has_reference(sources)

    def says_something(self, sources: EvidenceSources, scored: Scored) -> bool:
        """Return whether the reference model differs from the one that is scored."""
        named = sources.detect.reference
        if scored.role == "base":
            return named not in (None, BASE, TWIN)
        # The clean twin was trained to the end: beside a model on the way it shows time, too.
        return named != TWIN or (scored.role != "clean" and scored.model.checkpoint is None)

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return a pass of the reference model."""
        other = reference_model(sources)
        if other is None:
            raise TypeError("a reference detector without a reference model")
        return {
            "reference": statistics_step(other, sources.examples, view=TEXT, detect=sources.detect)
        }

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read the statistics under the reference model."""
        work.fields["reference"] = work.statistics("reference")


def has_reference(sources: EvidenceSources) -> bool:
    """Return whether `detect.reference` names a model; one of a path is not looked for."""
    named = sources.detect.reference
    if named in (None, BASE, TWIN) and not sources.of_file:
        return reference_model(sources) is not None
    return named is not None


def reference_model(sources: EvidenceSources) -> "ModelNode | None":
    """Return the model that `detect.reference` names."""
    named = sources.detect.reference
    if sources.served_reference is not None:
        return sources.served_reference
    if named in (None, BASE, TWIN) and not sources.of_file:
        return {BASE: sources.base, TWIN: sources.twin}.get(str(named))
    return None if named is None else further_model(named, sources)


def further_model(path_or_id: str, sources: EvidenceSources) -> "ModelNode":
    """Return a pretrained model, named by its content; a step's input or settings say which."""
    # Found by name: how models are named and loaded is no part of the code that reads scores.
    node: ModelNode = find_function("train.models.model_node:pretrained_node")(
        path_or_id, trust_remote_code=sources.trust_remote_code
    )
    return node
