"""Neighbours: texts that a masked language model proposes, and how likely the target finds them.

The texts are made once for each pool of examples and serve every model.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detect.asked_model import target_execution, target_settings
from detect.evidence.needs import NeighbourTexts
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.evidence.reference import pretrained_node
from detect.neighbours.neighbours import MEANS_FILE, read_means
from detect.settings import DetectSettings, NeighbourSettings
from inject.examples.parts import TEXTS
from inject.step import Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode


def neighbours_step(examples: Step, settings: NeighbourSettings, *, detect: DetectSettings) -> Step:
    """Let a masked language model propose the neighbours of every example."""
    masked = pretrained_node(settings.model)
    return Step(
        kind="neighbours",
        label=masked.label,
        function="detect.evidence_steps.neighbours:propose",
        settings={**masked.settings("model"), "count": settings.count},
        inputs={"examples": examples},
        libraries=("torch", "transformers"),
        reads={"examples": TEXTS},
        execution={**masked.execution("model"), "device": detect.device},
    )


def neighbour_means_step(model: "ModelNode", texts: Step, *, detect: DetectSettings) -> Step:
    """Make the mean log-probability of every neighbour under one model."""
    return Step(
        kind="neighbour_means",
        label=model.label,
        function="detect.evidence_steps.neighbours:build",
        settings={"policy": detect.policy().text_record(), **target_settings(model, detect)},
        inputs={**model.inputs("model"), "neighbours": texts},
        libraries=("torch", "transformers"),
        execution=target_execution(model, detect),
    )


class _NeighbourProvider(Provider[NeighbourTexts]):
    hint = "Name a masked language model (detect.neighbours.model)."
    leaves = ((MEANS_FILE, ()),)

    def available(self, sources: EvidenceSources) -> bool:
        return sources.detect.neighbours is not None

    def inputs(
        self, need: NeighbourTexts, sources: EvidenceSources, scored: Scored
    ) -> dict[str, Step]:
        settings = sources.detect.neighbours
        if settings is None:
            raise TypeError("neighbours without a masked language model")
        texts = neighbours_step(sources.examples, settings, detect=sources.detect)
        return {"neighbours": neighbour_means_step(scored.model, texts, detect=sources.detect)}

    def read(self, needs: Sequence[NeighbourTexts], work: Work) -> None:
        table = read_means(work.inputs["neighbours"])
        work.fields["neighbours"] = [table[row.example_id] for row in work.rows]


NEIGHBOURS: Provider[NeighbourTexts] = _NeighbourProvider()
"""The need of neighbours is met by a masked language model and the model that is scored."""
