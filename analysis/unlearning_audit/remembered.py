"""Which chunks a model truly remembers, decided without the ratio: by what it writes.

A chunk is remembered by a model where the longest stretch of the true continuation that any of its
sampled continuations repeats is longer than what a control reaches on any chunk. The control is the
retrained model on the same chunks, or, without one, the model itself on texts that no model saw.
A model that never knew the text so exceeds the level with a probability of at most 1 / (n + 1),
n chunks of the control being exchangeable with its own. Texts that are easy to guess
raise the level for all: what is called remembered is remembered, and more may be.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.intervals.estimate import Estimate, no_estimate
from analysis.unlearning_audit.estimates import Clusters, share
from analysis.unlearning_audit.ratio import Floats, Mask

OVERLAP = "longest_common_substring"
"""The column that decides: of it the largest value of a chunk's continuations counts."""
FEW = 20
"""Chunks of the control below which the level is said to be weak."""


class Level(NamedTuple):
    """How much overlap a model reaches that never knew the texts."""

    value: float
    """NaN without a control."""
    chunks: int
    """Of the control."""
    about: str
    """Which control it is, or why there is none."""


class Sampled(NamedTuple):
    """Which chunks were sampled for, and for how many each stands."""

    places: tuple[int, ...]
    """Of the chunks, in order."""
    weights: Floats
    """1 for suspicious ones, which are all sampled; more for those that were drawn."""
    undrawn: int
    """Chunks that are not suspicious and were not drawn."""


def sampled_chunks(suspicious: Mask, continued: Sequence[bool]) -> Sampled:
    """Return the design of a sample: all suspicious chunks, and some of the others.

    Args:
        suspicious: of all chunks.
        continued: which of them were sampled for.
    """
    drawn = np.asarray(continued, dtype=bool) & ~suspicious
    rest, places = int((~suspicious).sum()), np.flatnonzero(continued)
    weights = np.ones(len(suspicious))
    if drawn.any():
        weights[drawn] = rest / drawn.sum()
    return Sampled(tuple(places.tolist()), weights[places], rest - int(drawn.sum()))


def best_overlaps(continuations: pa.Table, model: str, column: str = OVERLAP) -> dict[int, float]:
    """Return the largest overlap of each chunk's continuations by a model."""
    found: dict[int, float] = {}
    wanted = continuations.select(["chunk", "model", column])
    for row in wanted.to_pylist():
        if row["model"] == model and row[column] is not None:
            found[row["chunk"]] = max(found.get(row["chunk"], -math.inf), row[column])
    return found


def control_level(overlaps: Mapping[int, float], about: str) -> Level:
    """Return the level that a control sets.

    Args:
        overlaps: the largest of each chunk that the control continued.
        about: which control it is; empty where there is none.
    """
    if not overlaps:
        why = "of the control nothing was continued"
        nothing = "there is neither a retrained model nor a held-out text"
        return Level(math.nan, 0, why if about else nothing)
    weak = f"; {len(overlaps)} chunks set a weak level" if len(overlaps) < FEW else ""
    return Level(max(overlaps.values()), len(overlaps), about + weak)


def remembered(overlaps: Mapping[int, float], chunks: Sequence[int], level: Level) -> Mask:
    """Return which of some chunks a model remembers; none without a level."""
    if math.isnan(level.value):
        return np.zeros(len(chunks), dtype=bool)
    return np.array([overlaps.get(chunk, -math.inf) > level.value for chunk in chunks], dtype=bool)


def share_remembered(known: Mask, sampled: Sampled, clusters: Clusters, level: Level) -> Estimate:
    """Return the share of all chunks that a model remembers.

    Args:
        known: of the sampled chunks.
        sampled: the design.
        clusters: of the sampled chunks.
        level: what remembering was measured by.
    """
    if math.isnan(level.value):
        return no_estimate(level.about)
    if not len(known):
        return no_estimate("no chunk was sampled for")
    if sampled.undrawn and not (sampled.weights > 1).any():
        return no_estimate("only suspicious chunks were sampled for")
    found = share(known * sampled.weights, clusters, among=sampled.weights)
    drawn = sampled.weights > 1
    if sampled.undrawn and not (known & drawn).any():
        whole = float(sampled.weights.sum())
        most = _hidden(sampled, clusters) + float(known.sum())
        return _reaching(found, most / whole)
    return found


def share_missed(
    known: Mask,
    flagged: Mask,
    sampled: Sampled,
    clusters: Clusters,
    level: Level,
    *,
    judged: Mask | None = None,
) -> Estimate:
    """Return the share of remembered chunks that the rule does not flag.

    Args:
        known: which of the sampled chunks are remembered.
        flagged: which of them the rule flags.
        sampled: the design.
        clusters: of the sampled chunks.
        level: what remembering was measured by.
        judged: which of them the rule judged, those with a ratio; the others count for nothing.
            None: all of them.
    """
    if math.isnan(level.value):
        return no_estimate(f"misses cannot be measured: {level.about}")
    if not known.any():
        return no_estimate(
            "misses cannot be measured: the model writes no chunk beyond what the control reaches"
        )
    if judged is not None:
        known = known & judged
    if not known.any():
        return no_estimate("misses cannot be measured: no remembered chunk has a ratio")
    if not (sampled.weights > 1).any() and sampled.undrawn:
        return no_estimate("misses cannot be measured: only suspicious chunks were sampled for")
    missed = known & ~flagged
    found = share(missed * sampled.weights, clusters, among=known * sampled.weights)
    if sampled.undrawn and not (missed & (sampled.weights > 1)).any():
        most = _hidden(sampled, clusters) + float((missed * sampled.weights).sum())
        return _reaching(found, most / (most + float(((known & flagged) * sampled.weights).sum())))
    return found


def share_false(
    known: Mask, flagged: Mask, sampled: Sampled, clusters: Clusters, level: Level
) -> Estimate:
    """Return the share of flagged chunks that the model does not remember; see `share_missed`."""
    if math.isnan(level.value):
        return no_estimate(level.about)
    if not flagged.any():
        return no_estimate("no chunk is flagged")
    wrong = flagged & ~known
    return share(wrong * sampled.weights, clusters, among=flagged * sampled.weights)


def _hidden(sampled: Sampled, clusters: Clusters) -> float:
    """Return how many chunks may be remembered among those that are not suspicious, at most.

    None of the m clusters of those that were drawn is, so at most 1 - 0.025^(1 / m) of them are.
    """
    drawn = np.flatnonzero(sampled.weights > 1)
    count = len({clusters.names[place] for place in drawn})
    return (1 - 0.025 ** (1 / max(count, 1))) * float(sampled.weights[drawn].sum())


def _reaching(found: Estimate, high: float) -> Estimate:
    """Return an estimate whose interval reaches at least so high."""
    if not np.isfinite(found.value):
        return found
    low = found.low if np.isfinite(found.low) else 0.0
    top = max(high, found.high if np.isfinite(found.high) else high, found.value)
    return found._replace(low=low, high=top).said("these chunks", found.caution)
