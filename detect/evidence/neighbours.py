"""Neighbours: texts that a masked language model proposes, and how likely the target finds them.

The texts are generated once for each pool of examples and serve every model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from detect.access import Access
from detect.evidence.needs import EvidenceSources, Need, NeedCost, Scored, Work
from detect.target_identity import AnyModel, asking_step
from detect.text_measures import MEANS_FILE, read_means
from inject.examples.example import TEXTS
from inject.step import Step, find_function


@dataclass(frozen=True)
class NeighbourTexts(Need):
    """Texts that differ from the text in one token, and how likely the target finds each."""

    evidence: ClassVar[str | None] = "neighbours"
    access: ClassVar[Access] = Access.TOKENS
    parts: ClassVar[Mapping[str, str]] = {"neighbours": r"neighbours"}
    leaves: ClassVar[Mapping[str, Sequence[str]]] = {MEANS_FILE: ()}
    hint: ClassVar[str] = "Name a masked language model (detect.neighbours.model)."
    file_hint: ClassVar[str] = "Name a masked language model (neighbours=PATH)."
    options: ClassVar[tuple[str, ...]] = ("neighbours",)

    def __str__(self) -> str:
        return "neighbours"

    @property
    def cost(self) -> NeedCost:
        """The target reads 25 neighbours, which a masked model proposes token by token."""
        return "target", 25

    def met_with(self, sources: EvidenceSources) -> bool:
        """Return whether a masked language model is set."""
        return sources.detect.neighbours is not None

    def inputs(self, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        """Return a pass of the scored model over the neighbours."""
        settings = sources.detect.neighbours
        if settings is None:
            raise TypeError("neighbours without a masked language model")
        # Found by name: naming and loading models is not part of the code that reads scores.
        masked: AnyModel = find_function("train.models.model_node:pretrained_node")(settings.model)
        texts = Step(
            kind="neighbours",
            label=masked.label,
            function="detect.generation.neighbour_proposals:propose",
            settings={**masked.settings("model"), "count": settings.count},
            inputs={"examples": sources.examples},
            libraries=("torch", "transformers"),
            reads={"examples": TEXTS},
            execution={**masked.execution("model"), "device": sources.detect.device},
        )
        means = asking_step(
            scored.model,
            sources.detect,
            kind="neighbour_means",
            label=scored.model.label,
            function="detect.generation.neighbour_proposals:build",
            settings={"policy": sources.detect.policy().text_record()},
            inputs={"neighbours": texts},
        )
        return {"neighbours": means}

    @classmethod
    def read(cls, needs: Sequence[Self], work: Work) -> None:
        """Read how likely the neighbours are."""
        work.fields["neighbours"] = work.rows_of(read_means(work.inputs["neighbours"]))
