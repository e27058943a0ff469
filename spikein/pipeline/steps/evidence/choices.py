"""Multiple choice: the target's answers about each example that has three paraphrases.

A model is asked once for each pool of examples: every score of `de_cop` is a function of the stored
answers, whatever its calibration.
"""

from collections.abc import Sequence

from detect.choices.answers import ChoiceEvidence, read_answers, write_answers
from detect.choices.question import choice_question
from detect.needs import Choices
from detect.settings import DetectSettings
from inject.examples.example import read_examples
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.artifact_parts import UNSPLIT
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.statistics import open_target
from spikein.pipeline.steps.training import ModelNode


class _ChoiceProvider(Provider[Choices]):
    hint = "Spike a dataset that brings paraphrases, such as `fictional`."

    def available(self, sources: EvidenceSources) -> bool:
        return sources.paraphrased

    def inputs(self, need: Choices, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        return {"choices": choices_step(scored.model, sources.examples, detect=sources.detect)}


CHOICES: Provider[Choices] = _ChoiceProvider()
"""The need of multiple choice is met by asking the model that is scored."""


def choices_step(model: ModelNode, examples: Step, *, detect: DetectSettings) -> Step:
    """Ask one model about every example; one without three paraphrases gets a reason."""

    def build(context: StepContext) -> None:
        from detect.engine.label_probabilities import label_probabilities

        rows = read_examples(context.inputs["examples"].path)
        answers = label_probabilities(
            open_target(model, context.inputs, detect),
            [choice_question(row.text, row.paraphrases, row.fields) for row in rows],
            batch_tokens=detect.batch_tokens,
            progress=lambda done, total: context.report(done, total, unit="questions"),
        )
        write_answers(context.out, [row.example_id for row in rows], answers)

    return Step(
        kind="choices",
        label=model.label,
        settings={
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=("torch", "transformers"),
        code=(root(build),),
        reads={"examples": UNSPLIT},
        build=build,
    )


def read_choices(needs: Sequence[Choices], work: Work) -> None:
    """Read the answers."""
    table = read_answers(work.inputs["choices"].path)
    work.fields["choices"] = ChoiceEvidence(answers=[table[row.example_id] for row in work.rows])
