"""Shares and differences over chunks, with intervals that know which chunks belong together.

A share is a ratio of two sums over chunks; its variance is that of the sums' linearised residuals,
added up by cluster (Wilson's ends, Student's t with one degree fewer than clusters; of a share of
none or all the exact bound for as many clusters). A mean or a difference of means has an interval
from 25 clusters a side on. A cluster is a group of
texts. Where there are fewer than 15 groups, a book or two, clusters are runs of neighbouring chunks
of one text: the interval then speaks of these texts alone, and says so. How often the intervals
hold the truth: docs/unlearning.md.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.intervals.clustered import Part
from analysis.intervals.ends import LEAST_GROUPS, TRUSTED_GROUPS, Scale
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Sample, mean_sample, pack_groups
from analysis.intervals.numbers import Numbers, Rows, mean_numbers, share_numbers
from analysis.unlearning_audit.text_chunks import Chunk

Floats = npt.NDArray[np.float64]
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

    def at(self, places: Sequence[int] | npt.NDArray[np.integer]) -> "Clusters":
        """Return those of some chunks."""
        return Clusters(tuple(self.names[place] for place in places), self.about)


def clusters_of(chunks: Sequence[Chunk], *, least_run: int = _LEAST_RUN) -> Clusters:
    """Return the clusters of chunks: groups of texts, or runs of neighbours where those are few.

    Args:
        chunks: in the order of their texts.
        least_run: neighbours of a run at least.
    """
    groups = [chunk.group for chunk in chunks]
    count = len(set(groups))
    if count >= TRUSTED_GROUPS or len(set(zip(groups, _texts(chunks), strict=True))) == len(chunks):
        return Clusters(tuple(groups))
    run = max(least_run, -(-len(chunks) // _RUNS))
    names, before, place = [], None, 0
    for chunk in chunks:
        place = place + 1 if chunk.text_id == before else 0
        before = chunk.text_id
        names.append(f"{chunk.text_id}\0{place // run}")
    texts = "this text" if len(set(_texts(chunks))) == 1 else "these texts"
    return Clusters(tuple(names), f"of {texts} alone (runs of {run} chunks are drawn together)")


def share(
    counted: Sequence[float] | Floats,
    clusters: Clusters,
    *,
    among: Sequence[float] | Floats | None = None,
) -> Estimate:
    """Return sum(counted) / sum(among), a share, with its interval.

    Args:
        counted: one a chunk, 0 to `among`; a weight where chunks were sampled.
        clusters: of the chunks.
        among: one a chunk; None for 1 each.
    """
    top = np.asarray(counted, dtype=np.float64)
    bottom = np.ones(len(top)) if among is None else np.asarray(among, dtype=np.float64)
    there = bottom > 0
    if not there.any():
        return no_estimate("no chunk to count among")
    values = np.where(there, top, np.nan) / np.where(there, bottom, 1.0)
    numbers = share_numbers(_rows(clusters, there), values, weights=bottom)
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
    given = np.asarray(values, dtype=np.float64)
    there = np.isfinite(given)
    if not there.any():
        return no_estimate("no value")
    return _estimate(mean_numbers(_rows(clusters, there), given), least, clusters.about)


def difference(
    values: Sequence[float] | Floats,
    first: Sequence[bool],
    clusters: Clusters,
    *,
    least: int = LEAST_VALUES,
) -> Estimate:
    """Return the mean of `values` where `first` holds less the mean of the others.

    A cluster with chunks on both sides counts once, with its two parts summed; `least` as `mean`.
    """
    given = np.asarray(values, dtype=np.float64)
    side = np.asarray(first, dtype=bool)
    there = np.isfinite(given)
    if not (there & side).any() or not (there & ~side).any():
        return no_estimate("nothing on one of the two sides")
    group, count = pack_groups(clusters.names)
    one, other = (
        mean_sample(given[at], group[at], np.ones((1, int(at.sum())), dtype=bool), count)
        for at in (there & side, there & ~side)
    )
    gap = Sample(
        one.value - other.value,
        np.stack([one.influence[0], -other.influence[0]]),
        np.stack([one.freedom[0], other.freedom[0]]),
        np.stack([one.groups[0], other.groups[0]]),
    )
    return _estimate(Numbers([{"": Part(gap, np.ones(1))}], Scale.SLOPE), least, clusters.about)


def _rows(clusters: Clusters, there: npt.NDArray[np.bool_]) -> Rows:
    return Rows.of(pack_groups(clusters.names)[0], member=there)


def _estimate(numbers: Numbers, least: int, about: str | None) -> Estimate:
    """Return one number with its interval, in words of chunks."""
    found = numbers.clustered()
    (estimate,) = numbers.estimates(confidence=CONFIDENCE)
    count = 0 if found is None else int(found.smaller_groups[0])
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


def _texts(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text_id for chunk in chunks]


def null(value: float) -> float | None:
    """Return a number; None where it is none."""
    return float(value) if math.isfinite(value) else None
