"""Shares and differences over chunks, with intervals that know which chunks belong together.

A share is a ratio of two sums over chunks; its variance is that of the sums' linearised residuals,
added up by cluster (Wilson's ends, Student's t with one degree fewer than clusters; of a share of
none or all the exact bound for as many clusters). A mean or a difference of means has an interval
from 25 clusters a side on. A cluster is a group of
texts. Where there are fewer than 15 groups, a book or two, clusters are runs of neighbouring chunks
of one text: the interval then speaks of these texts alone, and says so. How often the intervals
hold the truth: docs/unlearning-audit.md.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.intervals.bounds import LEAST_GROUPS, TRUSTED_GROUPS, Scale, find_interval
from analysis.intervals.clustered import Clustered
from analysis.intervals.estimate import Estimate, no_estimate
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
    if not (bottom > 0).any():
        return no_estimate("no chunk to count among")
    return _ratio(top, bottom, clusters, Scale.TPR, LEAST_GROUPS)


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
    return _ratio(np.where(there, given, 0.0), there.astype(float), clusters, Scale.SLOPE, least)


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
    one, other = np.flatnonzero(there & side), np.flatnonzero(there & ~side)
    if not len(one) or not len(other):
        return no_estimate("nothing on one of the two sides")
    names = sorted({clusters.names[place] for place in (*one, *other)})
    numbers = {name: number for number, name in enumerate(names)}
    sums = np.zeros((2, len(names)))
    counts = []
    for row, places in enumerate((one, other)):
        own = [clusters.names[place] for place in places]
        count = len(set(own))
        counts.append(count)
        apart = (given[places] - given[places].mean()) / len(places)
        scale = np.sqrt(count / (count - 1)) if count > 1 else 0.0
        np.add.at(sums[row], [numbers[name] for name in own], apart * scale)
    value = float(given[one].mean() - given[other].mean())
    variances = np.square(sums).sum(axis=1)
    freedom = variances.sum() ** 2 / max(
        sum(v**2 / max(count - 1, 1) for v, count in zip(variances, counts, strict=True)), 1e-300
    )
    found = _clustered(value, sums[0] - sums[1], min(counts))
    found = found._replace(freedom=np.array([max(freedom, 1.0)]))
    return _estimate(found, Scale.SLOPE, least, clusters.about)


def _ratio(top: Floats, bottom: Floats, clusters: Clusters, scale: Scale, least: int) -> Estimate:
    """Return sum(top) / sum(bottom) over the chunks with a bottom, by its linearised residuals."""
    there = np.flatnonzero(bottom > 0)
    top, bottom, own = top[there], bottom[there], clusters.at(there).names
    value = float(top.sum() / bottom.sum())
    names = {name: number for number, name in enumerate(dict.fromkeys(own))}
    sums = np.zeros(len(names))
    np.add.at(sums, [names[name] for name in own], (top - value * bottom) / bottom.sum())
    count = len(names)
    sums *= np.sqrt(count / (count - 1)) if count > 1 else 0.0
    return _estimate(_clustered(value, sums, count), scale, least, clusters.about)


def _clustered(value: float, sums: Floats, count: int) -> Clustered:
    one = np.array([1], dtype=np.int64)
    return Clustered(
        value=np.array([value]),
        variance=np.array([float(np.square(sums).sum())]),
        freedom=np.array([float(max(count - 1, 1))]),
        seeds=one,
        lowest=np.array([value]),
        highest=np.array([value]),
        member_groups=one * count,
        smaller_groups=one * count,
        influence=sums[None],
    )


def _estimate(found: Clustered, scale: Scale, least: int, about: str | None) -> Estimate:
    value, count = float(found.value[0]), int(found.smaller_groups[0])
    counted = f"{count} independent {'chunk' if count == 1 else 'chunks or runs of them'}"
    if count < least:
        return Estimate(value, np.nan, np.nan, f"{counted}, fewer than {least}", about)
    interval = find_interval(found, scale, confidence=CONFIDENCE)
    low, high = float(interval.low[0]), float(interval.high[0])
    if not (np.isfinite(low) and np.isfinite(high)):
        return Estimate(value, np.nan, np.nan, "the chunks do not differ", about)
    few = f"not to be trusted: {counted}" if count < TRUSTED_GROUPS else None
    return Estimate(value, low, high, None, "; ".join(filter(None, (about, few))) or None)


def _texts(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text_id for chunk in chunks]


def null(value: float) -> float | None:
    """Return a number; None where it is none."""
    return float(value) if math.isfinite(value) else None
