"""The step that finds out how surprising every word of every example is to a reference model."""

from detect.asked_model import target_execution, target_settings
from detect.engine.open_target import open_target
from detect.generation.word_statistics import open_reference, word_statistics, write_words
from detect.settings import DetectSettings
from inject.examples.example import read_examples
from inject.examples.parts import TEXTS
from inject.step import Step, StepContext
from train.models.model_node import ModelNode


def words_step(reference: ModelNode, examples: Step, detect: DetectSettings) -> Step:
    """Find out how surprising every word of every example is to a reference model."""
    return Step(
        kind="words",
        label=reference.label,
        function=f"{__name__}:build",
        settings=target_settings(reference, detect),
        inputs={**reference.inputs("model"), "examples": examples},
        libraries=("torch", "transformers", "unicode"),
        reads={"examples": TEXTS},
        execution=target_execution(reference, detect),
    )


def build(context: StepContext) -> None:
    """Ask the reference model, a masked or a causal one, and write what it says."""
    from detect.engine.masked_model import MaskedModel

    detect = DetectSettings.model_validate(context.execution["detect"])
    rows = read_examples(context.inputs["examples"])
    given = ModelNode.given(context, "model")
    with given.unchanged():
        model = open_reference(
            given.path, load_causal=lambda _: open_target(context), device=detect.device
        )
    unit = "texts" if isinstance(model, MaskedModel) else "tokens"
    found = word_statistics(
        model,
        [row.text for row in rows],
        batch_tokens=detect.batch_tokens,
        progress=lambda done, total: context.report(done, total, unit=unit),
    )
    write_words(context.out, [row.example_id for row in rows], found)
