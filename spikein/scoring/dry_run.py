"""What scoring rows would do and take, step by step; no model scores a text, nothing is sent.

Time is told as `spikein plan` tells it: by the operations of a pass, and the rate at which this
machine trains a model of the sizes, which takes some seconds to measure. Steps in which a model
writes have no estimate. A server is asked what it takes by a few short requests, none of which has
a text of the rows.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from inject.server.client import Estimate
from inject.step import Step
from spikein.estimates.step_times import OTHER_SECONDS, pass_seconds
from spikein.executors.given_models import open_store
from spikein.pipeline.graph import Graph
from spikein.pipeline.graph import plan as plan_steps
from spikein.scoring.scored_rows import RowsPlan
from train.models.model_sizes import Sizes, sizes_of_config
from train.models.pretrained import find_model

if TYPE_CHECKING:
    from train.speed_measurement import TrainingRate

_READS = {"statistics": 1, "gradients": 3}
"""Kinds of step in which a model reads each text, and what that takes in forward passes."""
_TEXTLESS = ("examples", "scores")
_BYTES_A_TOKEN = 4


class PlannedStep(NamedTuple):
    """One step of a dry run."""

    kind: str
    label: str
    detectors: tuple[str, ...]
    """That need it."""
    state: str
    """In the store, or to do."""
    to_do: bool
    tokens: int | None
    """That a model reads, roughly: a quarter of the texts' bytes."""
    requests: Estimate | None
    """To a server."""
    seconds: float | None
    """On this machine; None if there is no estimate."""


def planned_steps(plan: RowsPlan, requests: Mapping[str, Estimate]) -> list[PlannedStep]:
    """Return the steps of a plan, what is there already, and what the others take.

    Args:
        plan: of `plan_rows`.
        requests: of `count_requests`.
    """
    tokens = sum(-(-len(text.encode()) // _BYTES_A_TOKEN) for text in plan.rows.texts)
    with open_store(plan.options.store) as store:
        steps = plan_steps(Graph(goals=(plan.step,)), store)
    context = max(tokens // max(len(plan.rows.texts), 1), 1)
    return [
        PlannedStep(
            kind=planned.step.kind,
            label=planned.step.label,
            detectors=plan.detectors_of.get(planned.step.digest, ()),
            state=planned.in_words,
            to_do=planned.to_do,
            tokens=tokens if _reads_rows(planned.step) else None,
            requests=requests.get(planned.step.digest),
            seconds=_seconds(planned.step, tokens, context) if planned.to_do else None,
        )
        for planned in steps
    ]


def _reads_rows(step: Step) -> bool:
    return step.kind in _READS and step.settings.get("rows") != "held_out"


def _seconds(step: Step, tokens: int, context: int) -> float | None:
    """Return the seconds that a step takes here; None if that cannot be estimated."""
    if step.kind in _TEXTLESS:
        return OTHER_SECONDS
    model = step.execution.get("model", {})
    if not _reads_rows(step) or not model.get("pretrained"):
        return None
    config = find_model(model["pretrained"], revision=model.get("revision")).path / "config.json"
    sizes = sizes_of_config(json.loads(config.read_text(encoding="utf-8")), source="")
    if sizes is None:
        return None
    context = min(context, sizes.shape.context)
    return pass_seconds(tokens * _READS[step.kind], sizes=sizes, rate=_rate(sizes), context=context)


@cache
def _rate(sizes: Sizes) -> "TrainingRate":
    from train.settings import TrainSettings
    from train.speed_measurement import training_rate

    window = min(TrainSettings().context, sizes.shape.context)
    settings = TrainSettings(context=window, batch_tokens=4 * window)
    return training_rate(sizes.shape, sizes.vocabulary, settings)
