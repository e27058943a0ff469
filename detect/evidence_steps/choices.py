"""Asks the target to choose between each passage and its paraphrases."""

from detect.choices.answers import write_answers
from detect.choices.question import ORDERS, choice_question
from detect.engine.measured_cost import MeasuredCost, write_cost
from detect.engine.open_target import open_target
from detect.settings import DetectSettings
from inject.examples.example import read_examples, read_held_out
from inject.step import StepContext


def build(context: StepContext) -> None:
    """Ask about every row, and write the answers."""
    from detect.engine.label_probabilities import label_probabilities

    detect = DetectSettings.model_validate(context.execution["detect"])
    read = read_held_out if "rows" in context.settings else read_examples
    rows = read(context.inputs["examples"])
    answers = label_probabilities(
        open_target(context),
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
        MeasuredCost(passes=len(ORDERS) * asked, tokens_in=sum(one.tokens_in for one in answers)),
    )
