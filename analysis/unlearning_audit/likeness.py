"""How like the truth the continuations are, model by model, over the suspicious chunks.

Of the text measures and embeddings the closest of a chunk's continuations counts, as in Shi et al.
2024, figure 7; of the judge's scores the share of all continuations that get 4 or 5. The original
and the retrained model stand on both sides of the unlearned one: much as the one, it remembers;
much as the other, it does not.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.intervals.bootstrap import Estimate
from analysis.unlearning_audit.estimates import clusters_of, mean, share
from analysis.unlearning_audit.text_chunks import Chunk

CLOSEST = ("rouge_l", "longest_common_substring", "embedding")
JUDGED_ALIKE = 4


def likeness(continuations: pa.Table, chunks: Sequence[Chunk]) -> dict[str, dict[str, Estimate]]:
    """Return by model and measure what the continuations of some chunks reach.

    Args:
        continuations: chunk, model, and a column a measure.
        chunks: those that count.
    """
    wanted = {chunk.chunk for chunk in chunks}
    by_model: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    columns = ["chunk", "model", *CLOSEST, "judge"]
    for row in continuations.select(columns).to_pylist():
        if row["chunk"] in wanted:
            by_model[row["model"]][row["chunk"]].append(row)
    return {model: _of_model(rows, chunks) for model, rows in by_model.items()}


def _of_model(
    rows: dict[int, list[dict[str, Any]]], chunks: Sequence[Chunk]
) -> dict[str, Estimate]:
    there = [chunk for chunk in chunks if chunk.chunk in rows]
    clusters = clusters_of(there)
    found: dict[str, Estimate] = {}
    for column in CLOSEST:
        values = [[one[column] for one in rows[chunk.chunk]] for chunk in there]
        if any(value is not None for value in values[0]):
            best = [max(one for one in own if one is not None) for own in values]
            found[column] = mean(np.array(best, dtype=np.float64), clusters)
    scores = [
        [one["judge"] for one in rows[chunk.chunk] if one["judge"] is not None] for chunk in there
    ]
    if any(scores):
        alike = [sum(score >= JUDGED_ALIKE for score in own) for own in scores]
        found["judged_alike"] = share(
            np.array(alike, dtype=np.float64), clusters, among=[float(len(own)) for own in scores]
        )
    return found
