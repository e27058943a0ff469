"""Shares and differences over chunks, and the chunks that a model truly remembers.

A share is a ratio of two sums over chunks; its variance is that of the sums' linearised residuals,
added up by cluster (Wilson's ends, Student's t with one degree fewer than clusters; of a share of
none or all the exact bound for as many clusters). A mean or a difference of means has an interval
from 25 clusters a side on. A cluster is a group of texts. With fewer than 15
groups, a book or two, clusters are runs of neighbouring chunks of one text: the interval then
applies only to these texts, and is labelled so. Coverage of the intervals: docs/unlearning.md.

*Remembered* is decided without the ratio: a chunk is remembered by a model if the longest
span of the true continuation that any of its sampled continuations repeats is longer than what a
control reaches on any chunk. The control is the retrained model on the same chunks, or, without
one, the model itself on texts that no model saw. A model that never knew the text so exceeds the
level with a probability of at most 1 / (n + 1), n chunks of the control being exchangeable with its
own. Texts that are easy to guess raise the level for all: what is called remembered is remembered,
and more may be.
"""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from analysis.intervals.clustered import Part
from analysis.intervals.ends import LEAST_GROUPS, TRUSTED_GROUPS, IntervalMethod
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Floats, Mask, Sample, mean_sample, pack_groups
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import Rows, mean_numbers, share_numbers
from inject.examples.example import Example

CONFIDENCE = 0.95
LEAST_VALUES = 25
"""Clusters a side below which a mean or a difference of means has no interval: with 15, of values
as skewed as recall is, it covers 91.6 %, with 25 92.5."""
FEW = 20
"""Chunks of the control below which the level is reported as weak."""
_UNMEASURED = "misses cannot be measured"
_LEAST_RUN, _RUNS = 4, 40
"""Neighbouring chunks of a cluster at least, and how many clusters are aimed at."""


class Clusters(NamedTuple):
    """Which chunks belong together."""

    names: tuple[str, ...]
    """One a chunk."""
    about: str | None = None
    """The narrower scope of an interval."""


def clusters_of(chunks: Sequence[Example], *, least_run: int = _LEAST_RUN) -> Clusters:
    """Return the clusters of chunks: groups of texts, or runs of neighbours if groups are few.

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
    return Clusters(names, f"only of {which} (runs of {run} chunks are drawn together)")


def share(
    values: Sequence[float] | Floats | Mask, clusters: Clusters, *, weights: Floats | None = None
) -> Estimate:
    """Return the share of chunks that count, among those that may, with its interval.

    Args:
        values: 1 for a chunk that counts, 0 for one that does not, NaN if it is not in question.
        clusters: of the chunks.
        weights: number of chunks that each represents, if chunks were sampled: 0 for the others.
    """
    array = np.asarray(values, dtype=np.float64)
    usable = np.isfinite(array) if weights is None else np.isfinite(array) & (weights > 0)
    if not usable.any():
        return no_estimate("there is no chunk to count")
    numbers = share_numbers(_rows(clusters, usable), array, weights=weights)
    return _estimate(numbers, LEAST_GROUPS, clusters.about)


def mean(
    values: Sequence[float] | Floats, clusters: Clusters, *, least: int = LEAST_VALUES
) -> Estimate:
    """Return a mean over chunks with its interval; values that are NaN are left out.

    Args:
        values: one per chunk; for a paired difference of two models, the differences.
        clusters: of the chunks.
        least: clusters below which there is no interval.
    """
    array = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(array)
    if not finite.any():
        return no_estimate("no value")
    return _estimate(mean_numbers(_rows(clusters, finite), array), least, clusters.about)


def difference(
    values: Sequence[float] | Floats,
    first: Sequence[bool] | Mask,
    clusters: Clusters,
    *,
    least: int = LEAST_VALUES,
) -> Estimate:
    """Return the mean of `values` where `first` is true minus the mean of the others.

    A cluster with chunks on both sides counts once, with its two parts summed; `least` as `mean`.
    """
    array = np.asarray(values, dtype=np.float64)
    side = np.asarray(first, dtype=bool)
    finite = np.isfinite(array)
    if not (finite & side).any() or not (finite & ~side).any():
        return no_estimate("nothing on one of the two sides")
    group, count = pack_groups(clusters.names)
    inside, outside = (
        mean_sample(array[at], group[at], np.ones((1, int(at.sum())), dtype=bool), count)
        for at in (finite & side, finite & ~side)
    )
    gap = Sample(
        inside.value - outside.value,
        np.stack([inside.influence[0], -outside.influence[0]]),
        np.stack([inside.freedom[0], outside.freedom[0]]),
        np.stack([inside.groups[0], outside.groups[0]]),
    )
    return _estimate(
        Numbers([{"": Part(gap, np.ones(1))}], IntervalMethod.SLOPE), least, clusters.about
    )


def _rows(clusters: Clusters, chosen: Mask) -> Rows:
    return Rows.of(pack_groups(clusters.names)[0], member=chosen)


def _estimate(numbers: Numbers, least: int, about: str | None) -> Estimate:
    """Return one number with its interval, described in terms of chunks."""
    cluster = numbers.clustered()
    (estimate,) = numbers.estimates(confidence=CONFIDENCE)
    count = 0 if cluster is None else int(cluster.smaller_groups[0])
    counted = f"{count} independent {'chunk' if count == 1 else 'chunks or runs of them'}"
    few = f"not to be trusted: {counted}" if count < TRUSTED_GROUPS else ""
    basis = "these chunks"
    if count < least:
        basis, few = f"none: {counted}, fewer than {least}", ""
    elif not estimate.available:
        basis, few = "none: the chunks do not differ", ""
    if basis.startswith("none"):
        estimate = estimate._replace(low=np.nan, high=np.nan)
    return estimate.said(basis, about, few)


class ControlOverlap(NamedTuple):
    """The overlap that a model without knowledge of the texts reaches."""

    value: float
    """NaN without a control."""
    chunks: int
    """Of the control."""
    about: str
    """Which control it is, or why there is none."""


class Written(NamedTuple):
    """Whether a model remembers each sampled chunk; every array has one value per chunk."""

    known: Mask
    """Remembered; never a chunk that was not sampled for, and none without a level."""
    weights: Floats
    """Number of chunks that each represents: 0 if it was not sampled for, 1 for suspicious ones,
    which all were; more for those that were drawn."""
    undrawn: int
    """Chunks that are not suspicious and were not drawn."""
    level: ControlOverlap
    clusters: Clusters

    @property
    def sampled(self) -> Mask:
        """Which chunks were sampled for."""
        return self.weights > 0

    @property
    def remembered(self) -> list[tuple[int, bool]]:
        """Places of the chunks that were sampled for, and whether each is remembered; none without
        a control."""
        places = np.flatnonzero(self.sampled).tolist() if self.level.chunks else []
        return [(at, bool(self.known[at])) for at in places]

    @property
    def uncontrolled(self) -> str | None:
        """Why nothing is known of any chunk; None with a control."""
        return self.level.about if math.isnan(self.level.value) else None

    @property
    def one_sided(self) -> str | None:
        """Why nothing is known of chunks that are not suspicious; None if some were drawn."""
        sampled = not self.undrawn or bool((self.weights > 1).any())
        return None if sampled else "only suspicious chunks were sampled for"


def control_level(longest: Floats, about: str) -> ControlOverlap:
    """Return the level that a control sets.

    Args:
        longest: the longest run that it writes of each chunk; NaN if it continued none.
        about: the name of the control; empty if there is none.
    """
    runs = longest[np.isfinite(longest)]
    if not len(runs):
        why = "the control was not continued"
        nothing = "there is neither a retrained model nor a held-out text"
        return ControlOverlap(math.nan, 0, why if about else nothing)
    weak = f"; {len(runs)} chunks set a weak level" if len(runs) < FEW else ""
    return ControlOverlap(float(runs.max()), len(runs), about + weak)


def written_of(
    longest: Floats, suspicious: Mask, continued: Mask, level: ControlOverlap, clusters: Clusters
) -> Written:
    """Return which chunks a model remembers.

    Args:
        longest: the longest run that it writes of each chunk.
        suspicious: which chunks are; all of these were to be sampled for.
        continued: which were; of the others a sample.
        level: above which a chunk is remembered; NaN: none is.
        clusters: of the chunks.
    """
    sampled, n_unsuspicious = continued & ~suspicious, int((~suspicious).sum())
    weights = continued.astype(np.float64)
    if sampled.any():
        weights[sampled] = n_unsuspicious / sampled.sum()
    remembered = continued & (np.nan_to_num(longest, nan=-np.inf) > level.value)
    return Written(remembered, weights, n_unsuspicious - int(sampled.sum()), level, clusters)


def share_remembered(written: Written) -> Estimate:
    """Return the share of all chunks that a model remembers."""
    nothing = None if written.sampled.any() else "no chunk was sampled for"
    if reason := written.uncontrolled or nothing or written.one_sided:
        return no_estimate(reason)
    estimate = share(written.known, written.clusters, weights=written.weights)
    most = _largest_count(written, written.known)
    return estimate if most is None else _extend_interval(estimate, most / written.weights.sum())


def share_missed(written: Written, flags: Floats | Mask) -> Estimate:
    """Return the share of remembered chunks that the rule does not flag.

    Args:
        written: what the model remembers.
        flags: 1 for chunks that the rule flags, 0 for others; NaN for those without a ratio, which
            count for nothing.
    """
    remembered, nothing = written.known & np.isfinite(flags), None
    if not written.known.any():
        nothing = "the model writes no chunk beyond what the control reaches"
    elif not remembered.any():
        nothing = "no remembered chunk has a ratio"
    if reason := written.uncontrolled or nothing or written.one_sided:
        return no_estimate(f"{_UNMEASURED}: {reason}")
    missed = np.where(remembered, flags == 0, np.nan)
    estimate = share(missed, written.clusters, weights=written.weights)
    most = _largest_count(written, missed == 1)
    seen = float(written.weights[missed == 0].sum())
    return estimate if most is None else _extend_interval(estimate, most / (most + seen))


def share_false(written: Written, flags: Floats | Mask) -> Estimate:
    """Return the share of flagged chunks that the model does not remember; see `share_missed`."""
    nothing = None if ((flags == 1) & written.sampled).any() else "no chunk is flagged"
    if reason := written.uncontrolled or nothing:
        return no_estimate(reason)
    wrong = np.where(flags == 1, ~written.known, np.nan)
    return share(wrong, written.clusters, weights=written.weights)


def _largest_count(written: Written, counted: Mask) -> float | None:
    """Return the maximum number of chunks that may count; None if all that count are seen.

    If no chunk that was drawn counts, chunks that were not drawn may: none of the m clusters of
    those that were drawn does, so at most 1 - 0.025^(1 / m) of them do.
    """
    sampled = np.flatnonzero(written.weights > 1)
    if not written.undrawn or counted[sampled].any():
        return None
    clusters = len({written.clusters.names[place] for place in sampled.tolist()})
    hidden = (1 - 0.025 ** (1 / max(clusters, 1))) * float(written.weights[sampled].sum())
    return hidden + float(written.weights[counted].sum())


def _extend_interval(estimate: Estimate, high: float) -> Estimate:
    """Return an estimate whose interval reaches at least so high."""
    if not np.isfinite(estimate.value):
        return estimate
    low = estimate.low if np.isfinite(estimate.low) else 0.0
    top = max(high, estimate.high if np.isfinite(estimate.high) else high, estimate.value)
    return estimate._replace(low=low, high=top).said("these chunks", estimate.caution)
