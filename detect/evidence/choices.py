"""Multiple choice: the target's answers about each example that has three paraphrases.

A model is asked once for each pool of examples: every score of `de_cop` is a function of the stored
answers, whatever its calibration.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from detect.asked_model import model_libraries, target_execution, target_settings
from detect.choices.answers import ANSWERS_FILE, ChoiceEvidence, read_answers
from detect.engine.measured_cost import COST_FILE
from detect.evidence.continuations import lets_models_write
from detect.evidence.needs import Choices
from detect.evidence.provider import EvidenceSources, Provider, Scored, Work
from detect.settings import DetectSettings
from inject.examples.parts import HELD_OUT, UNSPLIT
from inject.step import Step

if TYPE_CHECKING:
    from train.models.model_node import ModelNode


def choices_step(
    model: "ModelNode", examples: Step, *, detect: DetectSettings, held_out: bool
) -> Step:
    """Ask one model about every example, or every held-out row.

    A row without three paraphrases gets a reason.
    """
    return Step(
        kind="choices",
        label=f"{'held-out-' if held_out else ''}{model.label}",
        function="detect.evidence_steps.choices:build",
        settings={
            **({"rows": "held_out"} if held_out else {}),
            **target_settings(model, detect),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=model_libraries(model, detect),
        reads={"examples": HELD_OUT if held_out else UNSPLIT},
        volatile=(COST_FILE,),
        execution=target_execution(model, detect),
    )


class _ChoiceProvider(Provider[Choices]):
    hint = (
        "Spike a dataset that brings paraphrases, such as `fictional`. 24 prompts an example are "
        "dear: for `all` set detect.generate=true, too."
    )
    leaves = ((ANSWERS_FILE, ()),)

    def available(self, sources: EvidenceSources) -> bool:
        return sources.paraphrased and lets_models_write(sources)

    def inputs(self, need: Choices, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        def step(*, held_out: bool) -> Step:
            return choices_step(
                scored.model, sources.examples, detect=sources.detect, held_out=held_out
            )

        clean = {"clean-choices": step(held_out=True)} if sources.held_out else {}
        return {"choices": step(held_out=False), **clean}

    def read(self, needs: Sequence[Choices], work: Work) -> None:
        # Answers about held-out rows are the calibration.
        table = read_answers(work.inputs["choices"])
        clean = work.inputs.get("clean-choices")
        work.fields["choices"] = ChoiceEvidence(
            answers=[table[row.example_id] for row in work.rows],
            clean=[] if clean is None else list(read_answers(clean).values()),
        )


CHOICES: Provider[Choices] = _ChoiceProvider()
"""The need of multiple choice is met by asking the model that is scored."""
