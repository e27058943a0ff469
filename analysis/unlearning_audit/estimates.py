"""Shares and differences over chunks, with intervals that know which chunks belong together.

A share is a ratio of two sums over chunks; its variance is that of the sums' linearised residuals,
added up by cluster (Wilson's ends, Student's t with one degree fewer than clusters; of a share of
none or all the exact bound for as many clusters). A mean or a difference of means has an interval
from 25 clusters a side on. A cluster is a group of
texts. Where there are fewer than 15 groups, a book or two, clusters are runs of neighbouring chunks
of one text: the interval then speaks of these texts alone, and says so. How often the intervals
hold the truth: docs/unlearning.md.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from analysis.intervals.clustered import Part
from analysis.intervals.ends import LEAST_GROUPS, TRUSTED_GROUPS, Scale
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Mask, Sample, mean_sample, pack_groups
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import Rows, mean_numbers, share_numbers
from analysis.metrics import Floats
from inject.examples.example import Example

CONFIDENCE = 0.95
LEAST_VALUES = 25
"""Clusters a side below which a mean or a difference of means has no interval: with 15, of values
as skewed as recall is, it covers 91.6 %, with 25 92.5."""
_LEAST_RUN, _RUNS = 4, 40
"""Neighbouring chunks of a cluster at least, and how many clusters are aimed at."""


class Clusters(NamedTuple):
    """Which chunks belong together."""

    names: tuple[str, ...]
    """One a chunk."""
    about: str | None = None
    """Of what alone an interval speaks."""


def clusters_of(chunks: Sequence[Example], *, least_run: int = _LEAST_RUN) -> Clusters:
    """Return the clusters of chunks: groups of texts, or runs of neighbours where those are few.

    Args:
        chunks: in the order of their texts.
        least_run: neighbours of a run at least.
    """
    groups = [chunk.group for chunk in chunks]
    texts = [chunk.source_id for chunk in chunks]
    if len({*groups}) >= TRUSTED_GROUPS or len({*zip(groups, texts, strict=True)}) == len(chunks):
        return Clusters(tuple(groups))
    run = max(least_run, -(-len(chunks) // _RUNS))
    neighbours = ((text, at) for text, own in groupby(texts) for at, _ in enumerate(own))
    names = tuple(f"{text}\0{at // run}" for text, at in neighbours)
    which = "this text" if len({*texts}) == 1 else "these texts"
    return Clusters(names, f"of {which} alone (runs of {run} chunks are drawn together)")


def share(
    values: Sequence[float] | Floats, clusters: Clusters, *, weights: Floats | None = None
) -> Estimate:
    """Return the share of chunks that count, among those that may, with its interval.

    Args:
        values: 1 for a chunk that counts, 0 for one that does not, NaN where it is not asked.
        clusters: of the chunks.
        weights: for how many each stands, where chunks were sampled: 0 for those that were not.
    """
    array = np.asarray(values, dtype=np.float64)
    own = np.ones(len(array)) if weights is None else weights
    there = np.isfinite(array) & (own > 0)
    if not there.any():
        return no_estimate("no chunk to count among")
    numbers = share_numbers(_rows(clusters, there), array, weights=own)
    return _estimate(numbers, LEAST_GROUPS, clusters.about)


def mean(
    values: Sequence[float] | Floats, clusters: Clusters, *, least: int = LEAST_VALUES
) -> Estimate:
    """Return a mean over chunks with its interval; values that are NaN are left out.

    Args:
        values: one a chunk; for a paired difference of two models, the differences.
        clusters: of the chunks.
        least: clusters below which there is no interval.
    """
    array = np.asarray(values, dtype=np.float64)
    there = np.isfinite(array)
    if not there.any():
        return no_estimate("no value")
    return _estimate(mean_numbers(_rows(clusters, there), array), least, clusters.about)


def difference(
    values: Sequence[float] | Floats,
    first: Sequence[bool] | Mask,
    clusters: Clusters,
    *,
    least: int = LEAST_VALUES,
) -> Estimate:
    """Return the mean of `values` where `first` holds less the mean of the others.

    A cluster with chunks on both sides counts once, with its two parts summed; `least` as `mean`.
    """
    array = np.asarray(values, dtype=np.float64)
    side = np.asarray(first, dtype=bool)
    there = np.isfinite(array)
    if not (there & side).any() or not (there & ~side).any():
        return no_estimate("nothing on one of the two sides")
    group, count = pack_groups(clusters.names)
    one, other = (
        mean_sample(array[at], group[at], np.ones((1, int(at.sum())), dtype=bool), count)
        for at in (there & side, there & ~side)
    )
    gap = Sample(
        one.value - other.value,
        np.stack([one.influence[0], -other.influence[0]]),
        np.stack([one.freedom[0], other.freedom[0]]),
        np.stack([one.groups[0], other.groups[0]]),
    )
    return _estimate(Numbers([{"": Part(gap, np.ones(1))}], Scale.SLOPE), least, clusters.about)


def _rows(clusters: Clusters, there: Mask) -> Rows:
    return Rows.of(pack_groups(clusters.names)[0], member=there)


def _estimate(numbers: Numbers, least: int, about: str | None) -> Estimate:
    """Return one number with its interval, in words of chunks."""
    cluster = numbers.clustered()
    (estimate,) = numbers.estimates(confidence=CONFIDENCE)
    count = 0 if cluster is None else int(cluster.smaller_groups[0])
    counted = f"{count} independent {'chunk' if count == 1 else 'chunks or runs of them'}"
    few = f"not to be trusted: {counted}" if count < TRUSTED_GROUPS else ""
    said = "these chunks"
    if count < least:
        said, few = f"none: {counted}, fewer than {least}", ""
    elif not estimate.available:
        said, few = "none: the chunks do not differ", ""
    if said.startswith("none"):
        estimate = estimate._replace(low=np.nan, high=np.nan)
    return estimate.said(said, about, few)
