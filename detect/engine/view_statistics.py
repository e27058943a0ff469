"""The step that computes token statistics of a view, and the pass that it shares with others."""

from collections.abc import Sequence
from typing import Any

from detect.engine.forward_pass import token_statistics
from detect.engine.open_target import open_target
from detect.engine.target import Target
from detect.engine.token_ids import parse_ids
from detect.settings import DetectSettings
from detect.target_identity import MeasuredCost, write_cost
from detect.token_statistics import TokenStatistics, scored_from, write_statistics
from detect.views import view_text
from inject.examples.example import Example, read_examples, read_held_out
from inject.step import StepContext


def build(context: StepContext) -> None:
    """Compute the token statistics of every row, and write them."""
    read = read_held_out if "rows" in context.settings else read_examples
    rows = read(context.inputs["examples"])
    record = {"view": context.settings["view"]}
    write_pass(context, open_target(context), rows, record=record)


def write_pass(
    context: StepContext, target: Target, rows: Sequence[Example], *, record: dict[str, Any]
) -> None:
    """Let a target read the rows in the step's view, and write their token statistics.

    Args:
        context: context of the step, made with `detect.target_identity.target_execution`.
        target: the model that reads.
        rows: the texts to read.
        record: stored with the statistics and the policy.
    """
    policy = DetectSettings.model_validate(context.execution["detect"]).policy()
    texts = [view_text(context.settings["view"], row.text) for row in rows]
    write_statistics(
        context.out,
        [row.example_id for row in rows],
        read_texts(context, target, texts),
        record={**record, **policy.record()},
    )


def read_texts(context: StepContext, target: Target, texts: Sequence[str]) -> list[TokenStatistics]:
    """Let a target read texts by the step's settings; record the cost.

    With the setting `ids` the texts are exact token ids (`detect.engine.token_ids`).
    """
    detect = DetectSettings.model_validate(context.execution["detect"])
    exact = [parse_ids(text) for text in texts] if context.settings.get("ids") else []
    statistics = token_statistics(
        target,
        [row.ids for row in exact] if exact else texts,
        detect.policy(),
        batch_tokens=detect.batch_tokens,
        compile_mode=detect.compile,
        progress=lambda done, total: context.report(done, total, unit="tokens"),
    )
    write_cost(context.out, MeasuredCost(passes=len(texts), tokens_in=sum(map(len, statistics))))
    starts = (row.start for row in exact)
    return [*map(scored_from, statistics, starts)] if exact else statistics
