"""Multiple choice: the target's answers about each example that has three paraphrases.

A model is asked once for each pool of examples: every score of `de_cop` is a function of the stored
answers, whatever its calibration.
"""

from collections.abc import Sequence

from detect.choices.answers import ChoiceEvidence, read_answers, write_answers
from detect.choices.question import ORDERS, choice_question
from detect.engine.measured_cost import COST_FILE, MeasuredCost, write_cost
from detect.needs import Choices
from detect.settings import DetectSettings
from inject.examples.example import read_examples, read_held_out
from inject.examples.parts import HELD_OUT, UNSPLIT
from inject.source_digest import root
from spikein.pipeline.graph import Step, StepContext
from spikein.pipeline.steps.evidence.continuations import lets_models_write
from spikein.pipeline.steps.evidence.provider import EvidenceSources, Provider, Scored, Work
from spikein.pipeline.steps.statistics import model_libraries, open_target
from spikein.pipeline.steps.training import ModelNode


class _ChoiceProvider(Provider[Choices]):
    hint = (
        "Spike a dataset that brings paraphrases, such as `fictional`. 24 prompts an example are "
        "dear: for `all` set detect.generate=true, too."
    )

    def available(self, sources: EvidenceSources) -> bool:
        return sources.paraphrased and lets_models_write(sources)

    def inputs(self, need: Choices, sources: EvidenceSources, scored: Scored) -> dict[str, Step]:
        def step(*, held_out: bool) -> Step:
            return choices_step(
                scored.model, sources.examples, detect=sources.detect, held_out=held_out
            )

        clean = {"clean-choices": step(held_out=True)} if sources.held_out else {}
        return {"choices": step(held_out=False), **clean}


CHOICES: Provider[Choices] = _ChoiceProvider()
"""The need of multiple choice is met by asking the model that is scored."""


def choices_step(
    model: ModelNode, examples: Step, *, detect: DetectSettings, held_out: bool
) -> Step:
    """Ask one model about every example, or every held-out row.

    A row without three paraphrases gets a reason.
    """
    read = read_held_out if held_out else read_examples

    def build(context: StepContext) -> None:
        from detect.engine.label_probabilities import label_probabilities

        rows = read(context.inputs["examples"].path)
        answers = label_probabilities(
            open_target(model, context.inputs, detect),
            [choice_question(row.text, row.paraphrases, row.fields) for row in rows],
            batch_tokens=detect.batch_tokens,
            progress=lambda done, total: context.report(done, total, unit="questions"),
        )
        write_answers(
            context.out,
            [row.example_id for row in rows],
            answers,
            [f"{row.dataset}\n{row.group}" for row in rows],
        )
        asked = sum(one.log_probability is not None for one in answers)
        write_cost(
            context.out,
            MeasuredCost(
                passes=len(ORDERS) * asked, tokens_in=sum(one.tokens_in for one in answers)
            ),
        )

    return Step(
        kind="choices",
        label=f"{'held-out-' if held_out else ''}{model.label}",
        settings={
            **({"rows": "held_out"} if held_out else {}),
            "dtype": model.dtype_identity(detect.dtype),
            **model.settings("model"),
        },
        inputs={**model.inputs("model"), "examples": examples},
        libraries=model_libraries(model, detect),
        code=(root(build),),
        reads={"examples": HELD_OUT if held_out else UNSPLIT},
        volatile=(COST_FILE,),
        build=build,
    )


def read_choices(needs: Sequence[Choices], work: Work) -> None:
    """Read the answers about the examples, and those about held-out rows: the calibration."""
    table = read_answers(work.inputs["choices"].path)
    clean = work.inputs.get("clean-choices")
    work.fields["choices"] = ChoiceEvidence(
        answers=[table[row.example_id] for row in work.rows],
        clean=[] if clean is None else list(read_answers(clean.path).values()),
    )
