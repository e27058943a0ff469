"""Neighbours: texts that a masked language model proposes, and how likely the target finds them.

The texts are made once for each pool of examples and serve every model.
"""

from collections.abc import Sequence

from detect.needs import NeighbourTexts
from detect.neighbours.neighbours import (
    neighbour_means,
    read_means,
    read_neighbours,
    write_means,
    write_neighbours,
)
from detect.settings import DetectSettings, NeighbourSettings
from inject.examples.example import read_examples
from inject.examples.parts import TEXTS
from inject.reading.unchanged import unchanged
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.statistics import open_target
from spikein.pipeline.steps.training import ModelNode

_READ = ("bos", "score_first", "long", "context")
"""What of the policy bears on the mean log-probability."""


class _NeighbourProvider(Provider[NeighbourTexts]):
    hint = "Name a masked language model (detect.neighbours.model)."

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


NEIGHBOURS: Provider[NeighbourTexts] = _NeighbourProvider()
"""The need of neighbours is met by a masked language model and the model that is scored."""


def neighbours_step(examples: Step, settings: NeighbourSettings, *, detect: DetectSettings) -> Step:
    """Let a masked language model propose the neighbours of every example."""
    from train.models.pretrained import model_identity

    named = model_identity(settings.model)

    def build(context: StepContext) -> None:
        from detect.engine.masked_model import load_masked_model
        from detect.neighbours.proposals import find_neighbours

        rows = read_examples(context.inputs["examples"].path)
        with unchanged(settings.model, lambda: model_identity(settings.model), named):
            masked = load_masked_model(settings.model, device=detect.device)
        found = find_neighbours(
            masked,
            [row.text for row in rows],
            count=settings.count,
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
        write_neighbours(context.out, [row.example_id for row in rows], found)

    return Step(
        kind="neighbours",
        label=settings.model.rstrip("/").split("/")[-1],
        settings={"model": named, "count": settings.count},
        inputs={"examples": examples},
        libraries=("torch", "transformers"),
        code=(root(build),),
        reads={"examples": TEXTS},
        build=build,
    )


def neighbour_means_step(model: ModelNode, texts: Step, *, detect: DetectSettings) -> Step:
    """Make the mean log-probability of every neighbour under one model."""
    policy = detect.policy()
    record = {name: value for name, value in policy.record().items() if name in _READ}

    def build(context: StepContext) -> None:
        rows = read_neighbours(context.inputs["neighbours"].path)
        means = neighbour_means(
            open_target(model, context.inputs, detect),
            list(rows.values()),
            policy,
            batch_tokens=detect.batch_tokens,
            compile_mode=detect.compile,
            progress=lambda done, total: context.report(done, total, unit="tokens"),
        )
        write_means(context.out, list(rows), means)

    return Step(
        kind="neighbour_means",
        label=model.label,
        settings={
            "policy": record,
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "neighbours": texts},
        libraries=("torch", "transformers"),
        code=(root(build),),
        build=build,
    )


def read_neighbour_means(needs: Sequence[NeighbourTexts], work: Work) -> None:
    """Read how likely the model finds the neighbours."""
    table = read_means(work.inputs["neighbours"].path)
    work.fields["neighbours"] = [table[row.example_id] for row in work.rows]
