"""The loss on held-out background, before and after training: whether a learning rate harmed it.

The documents follow those of the corpus in the mixture's order; no model is trained on them. Each
number is the mean over documents of their mean negative log-likelihood, in nats per token; the
change is paired by document. Intervals are Student's over documents, and over seeds as readers
(`analysis.intervals.clustered`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analysis.arm import axis_column
from analysis.findings import question_table
from analysis.intervals.rows import Rows, mean_numbers
from analysis.unlearning.evidence import text_memory
from detect.token_statistics import read_statistics

BACKGROUND_LOSS = "background_loss"
METRICS = ("before", "after", "change")


class BackgroundArm(NamedTuple):
    """The statistics of held-out background under one arm's models."""

    axes: Mapping[str, str]
    seed: int
    before: Path | None
    """None without a base model."""
    after: Path


def background_loss_table(arms: Sequence[BackgroundArm], *, confidence: float) -> pa.Table:
    """Return a row per arm and metric: `before`, `after`, `change`.

    Args:
        arms: of all seeds.
        confidence: of the intervals.
    """
    cohorts: dict[tuple[tuple[str, str], ...], list[BackgroundArm]] = {}
    for arm in arms:
        cohorts.setdefault(tuple(arm.axes.items()), []).append(arm)
    rows = [row for same in cohorts.values() for row in _rows(same, confidence)]
    return question_table(BACKGROUND_LOSS, list(arms[0].axes), rows)


def _rows(arms: Sequence[BackgroundArm], confidence: float) -> list[dict[str, Any]]:
    losses = [(_losses(arm.before), _losses(arm.after)) for arm in arms]
    names = sorted({name for pair in losses for by_document in pair for name in by_document})
    first, last = (
        np.array([[pair[at].get(name, np.nan) for name in names] for pair in losses])
        for at in (0, 1)
    )
    number = np.repeat(np.arange(len(losses)), len(names))
    documents = Rows.of(np.tile(np.arange(len(names)), len(losses)), seed=number)
    rows = []
    for metric, values in zip(METRICS, (first, last, last - first), strict=True):
        numbers = mean_numbers(documents, values.ravel())
        counts = [
            int(part.weight[0]) for seed_parts in numbers.seeds for part in seed_parts.values()
        ]
        for estimate in numbers.estimates(confidence=confidence):
            axes = {axis_column(axis): value for axis, value in arms[0].axes.items()}
            rows.append({**axes, "metric": metric, **estimate.row(), "documents": min(counts)})
    return rows


def _losses(folder: Path | None) -> dict[str, float]:
    """Return the mean negative log-likelihood of each document."""
    if folder is None:
        return {}
    return {
        name: -text_memory(statistics).log_probability
        for name, statistics in read_statistics(folder).items()
    }
