"""The step in which a model continues the beginnings of all examples.

What was written is an artifact, so that every detector of continuations, and a new one, reads it.
"""

from detect.asked_model import model_libraries
from detect.engine.measured_cost import COST_FILE, MeasuredCost, write_cost
from detect.generation.continuations import (
    ContinuationRequest,
    continue_texts,
    request_record,
    write_continuations,
)
from detect.settings import DetectSettings
from inject.examples.example import read_examples
from inject.examples.parts import TEXTS
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.statistics import open_target
from spikein.pipeline.steps.training import ModelNode


def continuations_step(
    model: ModelNode, examples: Step, *, request: ContinuationRequest, detect: DetectSettings
) -> Step:
    """Let one model continue the beginning of every example."""

    def build(context: StepContext) -> None:
        from detect.targets.local import LocalTextModel

        rows = read_examples(context.inputs["examples"].path)
        writer = LocalTextModel(open_target(model, context.inputs, detect))
        found = continue_texts(
            writer,
            [row.text for row in rows],
            request,
            answers=context.unfinished,
            progress=lambda done, total: context.report(done, total, unit="texts"),
        )
        write_continuations(context.out, [row.example_id for row in rows], found)
        write_cost(
            context.out,
            MeasuredCost(
                passes=sum(len(one.texts) for one in found),
                tokens_in=sum(one.tokens_in for one in found),
                tokens_out=sum(one.tokens_out for one in found),
            ),
        )

    return Step(
        kind="continuations",
        label=f"{request.samples}-{model.label}",
        settings={
            "request": request_record(request),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=model_libraries(model, detect),
        code=(root(build),),
        reads={"examples": TEXTS},
        volatile=(COST_FILE,),
        build=build,
    )
