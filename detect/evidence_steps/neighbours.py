"""Lets a masked language model propose neighbours of texts, and a target read them."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from detect.engine.open_target import open_target
from detect.neighbours.neighbours import (
    NeighbourMeans,
    Neighbours,
    read_neighbours,
    write_means,
    write_neighbours,
)
from detect.settings import DetectSettings
from inject.examples.example import read_examples
from inject.step import StepContext
from train.models.model_node import ModelNode

UNSCORED = "no neighbour of it could be scored"


def propose(context: StepContext) -> None:
    """Find the neighbours of every example, and write them."""
    from detect.engine.masked_model import load_masked_model
    from detect.neighbours.proposals import find_neighbours

    rows = read_examples(context.inputs["examples"])
    given = ModelNode.given(context, "model")
    with given.unchanged():
        masked = load_masked_model(given.path, device=context.execution["device"])
    found = find_neighbours(
        masked,
        [row.text for row in rows],
        count=context.settings["count"],
        progress=lambda done, total: context.report(done, total, unit="texts"),
    )
    write_neighbours(context.out, [row.example_id for row in rows], found)


def build(context: StepContext) -> None:
    """Make the mean log-probability of every neighbour, and write them."""
    detect = DetectSettings.model_validate(context.execution["detect"])
    rows = read_neighbours(context.inputs["neighbours"])
    means = neighbour_means(
        open_target(context),
        list(rows.values()),
        detect.policy(),
        batch_tokens=detect.batch_tokens,
        compile_mode=detect.compile,
        progress=lambda done, total: context.report(done, total, unit="tokens"),
    )
    write_means(context.out, list(rows), means)


def neighbour_means(
    target: Any, neighbours: Sequence[Neighbours], policy: Any, **how: Any
) -> list[NeighbourMeans]:
    """Return the means of each text's neighbours, in the order given.

    Args:
        target: a `detect.engine.target.Target`.
        neighbours: of each text.
        policy: a `detect.policy.ScoringPolicy`.
        how: further arguments of `detect.engine.forward_pass.token_statistics`.
    """
    from detect.engine.forward_pass import token_statistics

    texts = [text for one in neighbours for text in one.texts]
    means = [
        float(np.mean(found.log_probability, dtype=np.float64)) if len(found) else None
        for found in token_statistics(target, texts, policy, **how)
    ]
    stops = list(accumulate(len(one.texts) for one in neighbours))
    found = []
    for one, stop in zip(neighbours, stops, strict=True):
        own = tuple(mean for mean in means[stop - len(one.texts) : stop] if mean is not None)
        reason = one.reason or (None if own else UNSCORED)
        found.append(NeighbourMeans(means=own, reason=reason))
    return found
