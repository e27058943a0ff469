"""Steps of task accuracy: how each model answers the benchmarks' questions.

A model is asked once for each pool of examples; the base model's answers serve all arms.
"""

from collections.abc import Sequence

from detect.settings import DetectSettings
from detect.task_accuracy.answers import write_accuracy
from detect.task_accuracy.prompts import FORMS
from inject.examples.contaminant import Contaminant
from inject.examples.example import read_examples
from inject.examples.parts import UNSPLIT
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.statistics import model_libraries, open_target
from spikein.pipeline.steps.training import ModelNode


def asked_datasets(contaminants: Sequence[Contaminant]) -> dict[str, str]:
    """Return the datasets whose questions have a closed answer: name → dataset."""
    return {one.name or one.dataset: one.dataset for one in contaminants if one.dataset in FORMS}


def accuracy_step(
    model: ModelNode, examples: Step, contaminants: Sequence[Contaminant], detect: DetectSettings
) -> Step | None:
    """Ask one model every example's question; None where no dataset has closed answers."""
    kinds = asked_datasets(contaminants)
    if not kinds:
        return None

    def build(context: StepContext) -> None:
        from detect.task_accuracy.scoring import task_accuracy

        rows = task_accuracy(
            open_target(model, context.inputs, detect),
            read_examples(context.inputs["examples"].path),
            kinds=kinds,
            batch_tokens=detect.batch_tokens,
            progress=lambda done, total: context.report(done, total, unit="tokens"),
        )
        write_accuracy(context.out, rows)

    return Step(
        kind="accuracy",
        label=model.label,
        settings={
            "kinds": kinds,
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=model_libraries(model, detect),
        code=(root(build),),
        reads={"examples": UNSPLIT},
        build=build,
    )
