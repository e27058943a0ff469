"""The step of task accuracy: a model's answers to the benchmarks' questions.

A model is queried once for each pool of examples; the base model's answers serve all arms.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detect.engine.open_target import open_target
from detect.settings import DetectSettings
from detect.target_identity import asking_step
from detect.task_accuracy.answers import write_accuracy
from detect.task_accuracy.prompts import FORMS
from inject.examples.example import UNSPLIT, read_examples
from inject.step import Step, StepContext
from train.models.model_node import ModelNode

if TYPE_CHECKING:
    from inject.examples.contaminant import Contaminant


def accuracy_step(
    model: ModelNode,
    examples: Step,
    contaminants: Sequence["Contaminant"],
    detect: DetectSettings,
) -> Step | None:
    """Return the step for one model and all questions; None if no dataset has closed answers."""
    kinds = {
        contaminant.name or contaminant.dataset: contaminant.dataset
        for contaminant in contaminants
        if contaminant.dataset in FORMS
    }
    if not kinds:
        return None
    return asking_step(
        model,
        detect,
        kind="accuracy",
        label=model.label,
        function=f"{__name__}:build",
        settings={"kinds": kinds},
        inputs={"examples": examples},
        reads={"examples": UNSPLIT},
    )


def build(context: StepContext) -> None:
    """Query the model, and write its answers."""
    from detect.task_accuracy.scoring import task_accuracy

    detect = DetectSettings.model_validate(context.execution["detect"])
    rows = task_accuracy(
        open_target(context),
        read_examples(context.inputs["examples"]),
        kinds=context.settings["kinds"],
        batch_tokens=detect.batch_tokens,
        progress=lambda done, total: context.report(done, total, unit="tokens"),
    )
    write_accuracy(context.out, rows)
