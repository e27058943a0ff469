"""Gradients: the norms of each example's, under the model that is scored."""

from collections.abc import Sequence

from detect.engine.measured_cost import COST_FILE, MeasuredCost, write_cost
from detect.gradients.norms import read_norms, write_norms
from detect.needs import Gradients
from detect.settings import DetectSettings
from inject.examples.example import read_examples
from inject.examples.parts import TEXTS
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.statistics import open_target
from spikein.pipeline.steps.training import ModelNode

_READ = ("bos", "score_first", "long", "context")
"""What of the policy bears on gradients."""


class _GradientProvider(Provider[Gradients]):
    def inputs(self, need: Gradients, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        return {"gradients": gradients_step(scored.model, sources.examples, detect=sources.detect)}


GRADIENTS: Provider[Gradients] = _GradientProvider()
"""The need of gradients is met by backward passes of the model that is scored."""


def gradients_step(model: ModelNode, examples: Step, *, detect: DetectSettings) -> Step:
    """Make the gradient norms of every example under one model."""
    policy = detect.policy()
    # Inverse temperatures are columns of the token statistics alone.
    record = {name: value for name, value in policy.record().items() if name in _READ}

    def build(context: StepContext) -> None:
        from detect.engine.gradients import gradient_norms

        rows = read_examples(context.inputs["examples"].path)
        norms = gradient_norms(
            open_target(model, context.inputs, detect),
            [row.text for row in rows],
            policy,
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
        write_norms(context.out, [row.example_id for row in rows], norms)
        read = [one.tokens_in for one in norms if one.tokens_in]
        write_cost(context.out, MeasuredCost(passes=len(read), tokens_in=sum(read)))

    return Step(
        kind="gradients",
        label=model.label,
        settings={
            "policy": record,
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=("torch", "transformers"),
        code=(root(build),),
        reads={"examples": TEXTS},
        volatile=(COST_FILE,),
        build=build,
    )


def read_gradients(needs: Sequence[Gradients], work: Work) -> None:
    """Read the norms."""
    table = read_norms(work.inputs["gradients"].path)
    work.fields["gradients"] = [table[row.example_id] for row in work.rows]
