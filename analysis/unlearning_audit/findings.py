"""What an audit finds: every share with its interval, from scores and continuations.

Pure: tables in, numbers out; no model is asked. The rule is judged against two things that the
ratio does not decide: how often it flags chunks on a model that never saw them (false alarms), and
whether what it flags is what the unlearned model still writes (`remembered`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from analysis.intervals.bootstrap import Estimate, no_estimate
from analysis.unlearning_audit.estimates import Clusters, clusters_of, share
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
    control, control_clusters, control_name = _control(audited, held_out, clusters)
    level = _level(continuations, audited, held_out)
    own = clusters.at(sampled.places)
    places = np.array(sampled.places, dtype=np.int64)
    numbers = [audited.chunks[place].chunk for place in sampled.places]
    by_model: dict[str, Mask] = {}
    for model in ("original", "unlearned"):
        by_model[model] = remembered(best_overlaps(continuations, model), numbers, level)
    known = by_model["unlearned"]
    if control is None:
        nothing = no_estimate("there is neither a retrained model nor a held-out text")
        threshold = Threshold(None, nothing, nothing, rate)
        false_alarms = nothing
    else:
        there = np.flatnonzero(np.isfinite(control))
        held = band.holds(control)[there].astype(float)
        false_alarms = share(held, control_clusters.at(there))
        threshold = calibrated_band(control, control_clusters, band.low, rate)
    then = np.zeros(len(flags), bool)
    if threshold.band is not None:
        then = threshold.band.holds(audited.unlearned)
    without = no_estimate(threshold.edge.reason or "there is no calibrated band")
    return Findings(
        band=band,
        flagged=share(flags[known_ratio].astype(float), clusters.at(np.flatnonzero(known_ratio))),
        false_alarms=false_alarms,
        false_alarms_of=control_name,
        level=level,
        remembered={
            model: share_remembered(mask, sampled, own, level) for model, mask in by_model.items()
        },
        missed=share_missed(known, flags[places], sampled, own, level, judged=known_ratio[places]),
        wrong=share_false(known, flags[places], sampled, own, level),
        threshold=threshold,
        flagged_then=without
        if threshold.band is None
        else share(then[known_ratio].astype(float), clusters.at(np.flatnonzero(known_ratio))),
        missed_then=without
        if threshold.band is None
        else share_missed(known, then[places], sampled, own, level, judged=known_ratio[places]),
    )


def _control(
    audited: Ratioed, held_out: Ratioed | None, clusters: Clusters
) -> tuple[Floats | None, Clusters, str]:
    """Return the ratios of a model that never saw the chunks; the retrained model's, if given."""
    if audited.retrained is not None:
        return audited.retrained, clusters, "the retrained model on the same chunks"
    if held_out is not None:
        name = (
            "the unlearned model on texts that no model saw, which is weaker: unlearning may move "
            "texts of its own kind otherwise"
        )
        return held_out.unlearned, clusters_of(held_out.chunks), name
    return None, clusters, "nothing"


def _level(continuations: pa.Table, audited: Ratioed, held_out: Ratioed | None) -> Level:
    audited_numbers = {chunk.chunk for chunk in audited.chunks}
    if audited.retrained is not None:
        found = best_overlaps(continuations, "retrained")
        overlaps = {chunk: value for chunk, value in found.items() if chunk in audited_numbers}
        return control_level(overlaps, "the retrained model on the same chunks")
    if held_out is not None:
        held = {chunk.chunk for chunk in held_out.chunks}
        found = best_overlaps(continuations, "unlearned")
        overlaps = {chunk: value for chunk, value in found.items() if chunk in held}
        return control_level(overlaps, "the unlearned model on texts that no model saw")
    return control_level({}, "")


def as_json(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as plain JSON values; null where there is no number."""
    return {
        "value": _number(estimate.value),
        "low": _number(estimate.low),
        "high": _number(estimate.high),
        "reason": estimate.reason,
        "caution": estimate.caution,
    }


def findings_json(found: Findings) -> dict[str, Any]:
    """Return the findings as plain JSON values."""
    calibrated = found.threshold.band
    return {
        "band": [found.band.low, found.band.high],
        "flagged": as_json(found.flagged),
        "false_alarms": {**as_json(found.false_alarms), "measured_on": found.false_alarms_of},
        "remembered": {
            "level": _number(found.level.value),
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


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
