"""Which chunks a model truly remembers, decided without the ratio: by what it writes.

A chunk is remembered by a model where the longest stretch of the true continuation that any of its
sampled continuations repeats is longer than what a control reaches on any chunk. The control is the
retrained model on the same chunks, or, without one, the model itself on texts that no model saw.
A model that never knew the text so exceeds the level with a probability of at most 1 / (n + 1),
n chunks of the control being exchangeable with its own. Texts that are easy to guess
raise the level for all: what is called remembered is remembered, and more may be.
"""

import math
from typing import NamedTuple

import numpy as np

from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Mask
from analysis.metrics import Floats
from analysis.unlearning_audit.estimates import Clusters, share

FEW = 20
"""Chunks of the control below which the level is said to be weak."""
_UNMEASURED = "misses cannot be measured"


class Level(NamedTuple):
    """How much overlap a model reaches that never knew the texts."""

    value: float
    """NaN without a control."""
    chunks: int
    """Of the control."""
    about: str
    """Which control it is, or why there is none."""


class Written(NamedTuple):
    """Which chunks a model remembers, of those that were sampled for; one value a chunk each."""

    known: Mask
    """Remembered; never a chunk that was not sampled for, and none without a level."""
    weights: Floats
    """For how many chunks each stands: 0 where it was not sampled for, 1 for suspicious ones, which
    all were; more for those that were drawn."""
    undrawn: int
    """Chunks that are not suspicious and were not drawn."""
    level: Level
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


def control_level(longest: Floats, about: str) -> Level:
    """Return the level that a control sets.

    Args:
        longest: the longest run that it writes of each chunk; NaN where it continued none.
        about: which control it is; empty where there is none.
    """
    runs = longest[np.isfinite(longest)]
    if not len(runs):
        why = "of the control nothing was continued"
        nothing = "there is neither a retrained model nor a held-out text"
        return Level(math.nan, 0, why if about else nothing)
    weak = f"; {len(runs)} chunks set a weak level" if len(runs) < FEW else ""
    return Level(float(runs.max()), len(runs), about + weak)


def written_of(
    longest: Floats, suspicious: Mask, continued: Mask, level: Level, clusters: Clusters
) -> Written:
    """Return which chunks a model remembers.

    Args:
        longest: the longest run that it writes of each chunk.
        suspicious: which chunks are; all of these were to be sampled for.
        continued: which were; of the others a sample.
        level: above which a chunk is remembered; NaN: none is.
        clusters: of the chunks.
    """
    drawn, rest = continued & ~suspicious, int((~suspicious).sum())
    weights = continued.astype(np.float64)
    if drawn.any():
        weights[drawn] = rest / drawn.sum()
    known = continued & (np.nan_to_num(longest, nan=-np.inf) > level.value)
    return Written(known, weights, rest - int(drawn.sum()), level, clusters)


def share_remembered(written: Written) -> Estimate:
    """Return the share of all chunks that a model remembers."""
    reason = _first_reason(
        (math.isnan(written.level.value), written.level.about),
        (not written.sampled.any(), "no chunk was sampled for"),
        (_suspicious_alone(written), "only suspicious chunks were sampled for"),
    )
    if reason:
        return no_estimate(reason)
    estimate = share(written.known.astype(float), written.clusters, weights=written.weights)
    most = _most(written, written.known)
    return estimate if most is None else _reaching(estimate, most / written.weights.sum())


def share_missed(written: Written, flagged: Mask, judged: Mask | None = None) -> Estimate:
    """Return the share of remembered chunks that the rule does not flag.

    Args:
        written: what the model remembers.
        flagged: which chunks the rule flags.
        judged: which it judged, those with a ratio; the others count for nothing. None: all.
    """
    known = written.known if judged is None else written.known & judged
    reason = _first_reason(
        (math.isnan(written.level.value), written.level.about),
        (
            not written.known.any(),
            "the model writes no chunk beyond what the control reaches",
        ),
        (not known.any(), "no remembered chunk has a ratio"),
        (_suspicious_alone(written), "only suspicious chunks were sampled for"),
    )
    if reason:
        return no_estimate(f"{_UNMEASURED}: {reason}")
    estimate = share(np.where(known, ~flagged, np.nan), written.clusters, weights=written.weights)
    most = _most(written, known & ~flagged)
    seen = float(written.weights[known & flagged].sum())
    return estimate if most is None else _reaching(estimate, most / (most + seen))


def share_false(written: Written, flagged: Mask) -> Estimate:
    """Return the share of flagged chunks that the model does not remember; see `share_missed`."""
    reason = _first_reason(
        (math.isnan(written.level.value), written.level.about),
        (not (flagged & written.sampled).any(), "no chunk is flagged"),
    )
    if reason:
        return no_estimate(reason)
    wrong = np.where(flagged, ~written.known, np.nan)
    return share(wrong, written.clusters, weights=written.weights)


def _first_reason(*cases: tuple[bool, str]) -> str | None:
    return next((reason for holds, reason in cases if holds), None)


def _suspicious_alone(written: Written) -> bool:
    return bool(written.undrawn) and not (written.weights > 1).any()


def _most(written: Written, counted: Mask) -> float | None:
    """Return how many chunks may count at most; None if as many do as are seen.

    If no chunk that was drawn counts, chunks that were not drawn may: none of the m clusters of
    those that were drawn does, so at most 1 - 0.025^(1 / m) of them do.
    """
    drawn = np.flatnonzero(written.weights > 1)
    if not written.undrawn or counted[drawn].any():
        return None
    clusters = len({written.clusters.names[place] for place in drawn.tolist()})
    hidden = (1 - 0.025 ** (1 / max(clusters, 1))) * float(written.weights[drawn].sum())
    return hidden + float(written.weights[counted].sum())


def _reaching(estimate: Estimate, high: float) -> Estimate:
    """Return an estimate whose interval reaches at least so high."""
    if not np.isfinite(estimate.value):
        return estimate
    low = estimate.low if np.isfinite(estimate.low) else 0.0
    top = max(high, estimate.high if np.isfinite(estimate.high) else high, estimate.value)
    return estimate._replace(low=low, high=top).said("these chunks", estimate.caution)
