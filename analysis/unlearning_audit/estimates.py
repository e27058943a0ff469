"""Shares and differences over chunks, with intervals that know which chunks belong together.

A share is a ratio of two sums over chunks; its variance is that of the sums' linearised residuals,
added up by cluster (Wilson's ends, Student's t with one degree fewer than clusters; of a share of
none or all the exact bound for as many clusters). A mean or a difference of means has an interval
from 25 clusters a side on. A cluster is a group of
texts. Where there are fewer than 15 groups, a book or two, clusters are runs of neighbouring chunks
of one text: the interval then speaks of these texts alone, and says so. How often the intervals
hold the truth: docs/unlearning-audit.md.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.intervals.bootstrap import Estimate, no_estimate
from analysis.intervals.bounds import LEAST_GROUPS, TRUSTED_GROUPS, Scale, find_interval
from analysis.intervals.clustered import Clustered
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


def clusters_of(chunks: Sequence[Chunk]) -> Clusters:
    """Return the clusters of chunks: groups of texts, or runs of neighbours where those are few."""
    groups = [chunk.group for chunk in chunks]
    count = len(set(groups))
    if count >= TRUSTED_GROUPS or len(set(zip(groups, _texts(chunks), strict=True))) == len(chunks):
        return Clusters(tuple(groups))
    run = max(_LEAST_RUN, -(-len(chunks) // _RUNS))
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
    number, value, sums = _residuals(top[there], bottom[there], clusters.at(np.flatnonzero(there)))
    found = _clustered(value, sums, number)
    interval = find_interval(found, Scale.TPR, confidence=CONFIDENCE)
    return _estimate(value, interval.low[0], interval.high[0], number, clusters.about)


def mean(values: Sequence[float] | Floats, clusters: Clusters) -> Estimate:
    """Return a mean over chunks with its interval; values that are NaN are left out."""
    given = np.asarray(values, dtype=np.float64)
    there = np.isfinite(given)
    if not there.any():
        return no_estimate("no value")
    own = clusters.at(np.flatnonzero(there))
    number, value, sums = _residuals(given[there], np.ones(int(there.sum())), own)
    if number < LEAST_VALUES:
        return _without(value, number, clusters)
    interval = find_interval(_clustered(value, sums, number), Scale.SLOPE, confidence=CONFIDENCE)
    return _estimate(value, interval.low[0], interval.high[0], number, clusters.about)


def difference(
    values: Sequence[float] | Floats, first: Sequence[bool], clusters: Clusters
) -> Estimate:
    """Return the mean of `values` where `first` holds less the mean of the others.

    A cluster with chunks on both sides counts once, with its two parts summed.
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
    fewest = min(counts)
    if fewest < LEAST_VALUES:
        return _without(value, fewest, clusters)
    variances = np.square(sums).sum(axis=1)
    freedom = variances.sum() ** 2 / max(
        sum(v**2 / (count - 1) for v, count in zip(variances, counts, strict=True)), 1e-300
    )
    found = _clustered(value, sums[0] - sums[1], fewest)
    found = found._replace(freedom=np.array([max(freedom, 1.0)]))
    interval = find_interval(found, Scale.SLOPE, confidence=CONFIDENCE)
    return _estimate(value, interval.low[0], interval.high[0], fewest, clusters.about)


def _residuals(top: Floats, bottom: Floats, clusters: Clusters) -> tuple[int, float, Floats]:
    """Return how many clusters there are, the ratio of sums, and its residuals by cluster."""
    value = float(top.sum() / bottom.sum())
    names = {name: number for number, name in enumerate(dict.fromkeys(clusters.names))}
    sums = np.zeros(len(names))
    own = [names[name] for name in clusters.names]
    np.add.at(sums, own, (top - value * bottom) / bottom.sum())
    count = len(names)
    return count, value, sums * (np.sqrt(count / (count - 1)) if count > 1 else 0.0)


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


def _estimate(value: float, low: float, high: float, count: int, about: str | None) -> Estimate:
    if count < LEAST_GROUPS:
        return Estimate(value, np.nan, np.nan, f"{_counted(count)} support no interval", about)
    if not (np.isfinite(low) and np.isfinite(high)):
        return Estimate(value, np.nan, np.nan, "the chunks do not differ", about)
    few = f"not to be trusted: {_counted(count)}" if count < TRUSTED_GROUPS else None
    said = "; ".join(one for one in (about, few) if one) or None
    return Estimate(value, float(low), float(high), None, said)


def _without(value: float, count: int, clusters: Clusters) -> Estimate:
    reason = f"{count} independent values on a side, fewer than {LEAST_VALUES}"
    return Estimate(value, np.nan, np.nan, reason, clusters.about)


def _counted(count: int) -> str:
    return f"{count} independent {'chunk' if count == 1 else 'chunks or runs of them'}"


def _texts(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text_id for chunk in chunks]
