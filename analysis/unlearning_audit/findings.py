"""What an audit finds: every share with its interval, from scores and continuations.

Pure: tables in, numbers out; no model is asked. The rule is judged against two things that the
ratio does not decide: how often it flags chunks on a model that never saw them (false alarms), and
whether what it flags is what the unlearned model still writes (`remembered`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analysis.intervals.estimate import Estimate, no_estimate
from analysis.unlearning_audit.estimates import Clusters, clusters_of, null, share
from analysis.unlearning_audit.ratio import Band, Floats, Mask
from analysis.unlearning_audit.remembered import (
    Level,
    Sampled,
    best_overlaps,
    control_level,
    remembered,
    share_false,
    share_missed,
    share_remembered,
)
from analysis.unlearning_audit.text_chunks import Chunk
from analysis.unlearning_audit.threshold import Threshold, calibrated_band


class Ratioed(NamedTuple):
    """The chunks of one kind with their ratios."""

    chunks: Sequence[Chunk]
    unlearned: Floats
    """Ratio of the unlearned model's score to the original's; NaN where there is none."""
    retrained: Floats | None
    """The same of the retrained model."""


class Findings(NamedTuple):
    """The numbers of an audit."""

    band: Band
    flagged: Estimate
    """Share of the chunks that the rule flags."""
    false_alarms: Estimate
    """Share that it flags on a model that never saw them."""
    false_alarms_of: str
    """On which chunks and which model that was measured."""
    level: Level
    remembered: Mapping[str, Estimate]
    """By model: the share of the chunks that it remembers."""
    written: Mapping[str, Mapping[int, bool]]
    """By model: whether it remembers each chunk that was continued, by its number; empty without a
    control."""
    longest: Mapping[str, float]
    """By model: the longest run of true words that it writes of a chunk; empty where it wrote
    none."""
    missed: Estimate
    """Of the chunks with a ratio that the unlearned model remembers, the share that the rule does
    not flag."""
    wrong: Estimate
    """Of the chunks that the rule flags, the share that the unlearned model does not remember."""
    threshold: Threshold
    """The band that would have been right."""
    flagged_then: Estimate
    """Share of the chunks that this band flags."""
    missed_then: Estimate
    """Of the remembered chunks, the share that this band does not flag."""


def find(
    audited: Ratioed,
    held_out: Ratioed | None,
    continuations: pa.Table,
    *,
    band: Band,
    rate: float,
    sampled: Sampled,
) -> Findings:
    """Return the numbers of an audit.

    Args:
        audited: the chunks that should be forgotten.
        held_out: chunks of texts that no model saw; None without.
        continuations: chunk, model and overlap of each continuation; chunks of `held_out` count on
            after those that are audited.
        band: of suspicious ratios.
        rate: of false alarms, that the calibrated band is to have.
        sampled: which audited chunks were continued.
    """
    clusters = clusters_of(audited.chunks)
    flags = band.holds(audited.unlearned)
    known_ratio = np.isfinite(audited.unlearned)
    judged = np.flatnonzero(known_ratio)
    control, control_clusters, control_name, level = _control(audited, held_out, continuations)
    own = clusters.at(sampled.places)
    places = np.array(sampled.places, dtype=np.int64)
    numbers = [audited.chunks[place].chunk for place in sampled.places]
    overlaps = {model: best_overlaps(continuations, model) for model in ("original", "unlearned")}
    by_model: dict[str, Mask] = {
        model: remembered(own, numbers, level) for model, own in overlaps.items()
    }
    known = by_model["unlearned"]
    continued = [at for at, number in enumerate(numbers) if number in overlaps["unlearned"]]
    if control is None:
        nothing = no_estimate("there is neither a retrained model nor a held-out text")
        threshold = Threshold(None, nothing, nothing, rate)
        false_alarms = nothing
    else:
        there = np.flatnonzero(np.isfinite(control))
        held = band.holds(control)[there].astype(float)
        false_alarms = share(held, control_clusters.at(there))
        threshold = calibrated_band(control, control_clusters, band.low, rate)
    flagged_then = missed_then = no_estimate(threshold.edge.reason or "there is no calibrated band")
    if threshold.band is not None:
        then = threshold.band.holds(audited.unlearned)
        flagged_then = share(then[judged].astype(float), clusters.at(judged))
        missed_then = share_missed(
            known, then[places], sampled, own, level, judged=known_ratio[places]
        )
    return Findings(
        band=band,
        flagged=share(flags[judged].astype(float), clusters.at(judged)),
        false_alarms=false_alarms,
        false_alarms_of=control_name,
        level=level,
        remembered={
            model: share_remembered(mask, sampled, own, level) for model, mask in by_model.items()
        },
        written={
            model: {numbers[at]: bool(mask[at]) for at in continued if level.chunks}
            for model, mask in by_model.items()
        },
        longest={
            model: max(run[numbers[at]] for at in continued) for model, run in overlaps.items()
        }
        if continued
        else {},
        missed=share_missed(known, flags[places], sampled, own, level, judged=known_ratio[places]),
        wrong=share_false(known, flags[places], sampled, own, level),
        threshold=threshold,
        flagged_then=flagged_then,
        missed_then=missed_then,
    )


def _control(
    audited: Ratioed, held_out: Ratioed | None, continuations: pa.Table
) -> tuple[Floats | None, Clusters, str, Level]:
    """Return the ratios of a model that never saw the chunks, what it is, and what it writes."""

    def level(model: str, chunks: Sequence[Chunk], about: str) -> Level:
        own = {chunk.chunk for chunk in chunks}
        overlaps = best_overlaps(continuations, model)
        return control_level({at: run for at, run in overlaps.items() if at in own}, about)

    if audited.retrained is not None:
        name = "the retrained model on the same chunks"
        own = clusters_of(audited.chunks)
        return audited.retrained, own, name, level("retrained", audited.chunks, name)
    if held_out is not None:
        name = "the unlearned model on texts that no model saw"
        weaker = f"{name}, which is weaker: unlearning may move texts of its own kind otherwise"
        own = clusters_of(held_out.chunks)
        return held_out.unlearned, own, weaker, level("unlearned", held_out.chunks, name)
    return None, Clusters(()), "nothing", control_level({}, "")


def shares(found: Findings) -> dict[str, Estimate]:
    """Return the numbers of an audit by their names in tables."""
    return {
        "remembered_original": found.remembered["original"],
        "remembered_unlearned": found.remembered["unlearned"],
        "flagged": found.flagged,
        "false_alarms": found.false_alarms,
        "missed": found.missed,
        "wrong": found.wrong,
        "calibrated_edge": found.threshold.edge,
        "calibrated_false_alarms": found.threshold.false_alarms,
        "calibrated_flagged": found.flagged_then,
        "calibrated_missed": found.missed_then,
    }


def as_json(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as plain JSON values; null where there is no number."""
    values = estimate._asdict()
    return {**values, **{name: null(values[name]) for name in ("value", "low", "high")}}


def findings_json(found: Findings) -> dict[str, Any]:
    """Return the findings as plain JSON values."""
    calibrated = found.threshold.band
    return {
        "band": [found.band.low, found.band.high],
        "flagged": as_json(found.flagged),
        "false_alarms": {**as_json(found.false_alarms), "measured_on": found.false_alarms_of},
        "remembered": {
            "level": null(found.level.value),
            "control_chunks": found.level.chunks,
            "control": found.level.about,
            **{model: as_json(one) for model, one in found.remembered.items()},
        },
        "missed": as_json(found.missed),
        "wrong": as_json(found.wrong),
        "calibrated": {
            "rate": found.threshold.rate,
            "band": None if calibrated is None else [calibrated.low, calibrated.high],
            "edge": as_json(found.threshold.edge),
            "false_alarms": as_json(found.threshold.false_alarms),
            "flagged": as_json(found.flagged_then),
            "missed": as_json(found.missed_then),
        },
    }
