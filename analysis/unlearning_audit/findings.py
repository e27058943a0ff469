"""What an audit finds: every share with its interval, from scores and continuations.

Pure: tables in, numbers out; no model is asked. The rule is judged against two things that the
ratio does not decide: how often it flags chunks on a model that never saw them (false alarms), and
whether what it flags is what the unlearned model still writes (`remembered`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from analysis.intervals.estimate import Estimate, no_estimate
from analysis.unlearning_audit.estimates import Clusters, clusters_of, difference, mean, share
from analysis.unlearning_audit.ratio import Band, Floats, Threshold, calibrated_band
from analysis.unlearning_audit.remembered import (
    Level,
    best_overlaps,
    control_level,
    remembered,
    sampled_chunks,
    share_false,
    share_missed,
    share_remembered,
)
from analysis.unlearning_audit.text_chunks import Chunk

SIMILARITIES = ("rouge_l", "longest_common_substring")
NO_CONTROL = "there is neither a retrained model nor a held-out text"


class Ratioed(NamedTuple):
    """The chunks of one kind with their ratios."""

    chunks: Sequence[Chunk]
    unlearned: Floats
    """Ratio of the unlearned model's score to the original's; NaN where there is none."""
    retrained: Floats | None
    """The same of the retrained model."""


class Findings(NamedTuple):
    """The numbers of an audit."""

    shares: dict[str, Estimate]
    """Each quantity by its name in the table of findings."""
    control: str
    """On which chunks and which model false alarms were measured."""
    levels: Mapping[str, Level]
    """By model: what its control reaches."""
    written: Mapping[str, Mapping[int, bool]]
    """By model: whether it remembers each chunk that was continued, by its number; empty without a
    control."""
    longest: Mapping[str, float]
    """By model: the longest run of true words that it writes of a chunk; empty where it wrote
    none."""


def find(
    audited: Ratioed,
    held_out: Ratioed | None,
    continuations: pa.Table,
    *,
    band: Band,
    rate: float,
) -> Findings:
    """Return the numbers of an audit.

    Args:
        audited: the chunks that should be forgotten.
        held_out: chunks of texts that no model saw; None without.
        continuations: chunk, model and overlap of each continuation. The chunks that are not
            suspicious and were continued are a sample of all that are not.
        band: of suspicious ratios.
        rate: of false alarms, that the calibrated band is to have.
    """
    clusters = clusters_of(audited.chunks)
    flags = band.holds(audited.unlearned)
    with_ratio = np.isfinite(audited.unlearned)
    control, control_clusters, control_name, levels = _control(audited, held_out, continuations)
    level = levels["unlearned"]
    overlaps = {model: best_overlaps(continuations, model) for model in ("original", "unlearned")}
    numbers = [chunk.chunk for chunk in audited.chunks]
    sampled = sampled_chunks(flags, [number in overlaps["unlearned"] for number in numbers])
    places = np.array(sampled.places, dtype=np.int64)
    own, continued = clusters.at(places), [numbers[place] for place in sampled.places]
    known = {model: remembered(runs, continued, levels[model]) for model, runs in overlaps.items()}
    found = {
        f"remembered_{model}": share_remembered(mask, sampled, own, levels[model])
        for model, mask in known.items()
    }
    mine = known["unlearned"]
    found["flagged"] = flagged_share(audited.unlearned, clusters, band)
    nothing = no_estimate(NO_CONTROL)
    threshold = Threshold(None, nothing, nothing)
    found["false_alarms"] = threshold.edge
    if control is not None:
        found["false_alarms"] = flagged_share(control, control_clusters, band)
        threshold = calibrated_band(control, control_clusters, band.low, rate)
    found["missed"] = share_missed(
        mine, flags[places], sampled, own, level, judged=with_ratio[places]
    )
    found["wrong"] = share_false(mine, flags[places], sampled, own, level)
    found["calibrated_edge"] = threshold.edge
    found["calibrated_false_alarms"] = threshold.false_alarms
    nothing = no_estimate(threshold.edge.reason or "there is no calibrated band")
    found |= {"calibrated_flagged": nothing, "calibrated_missed": nothing}
    if threshold.band is not None:
        then = threshold.band.holds(audited.unlearned)
        found["calibrated_flagged"] = flagged_share(audited.unlearned, clusters, threshold.band)
        found["calibrated_missed"] = share_missed(
            mine, then[places], sampled, own, level, judged=with_ratio[places]
        )
    if held_out is not None and audited.retrained is not None:
        held = clusters_of(held_out.chunks)
        found["flagged_holdout"] = flagged_share(held_out.unlearned, held, band)
    return Findings(
        shares=found,
        control=control_name,
        levels=levels,
        written={
            model: dict(zip(continued, mask.tolist(), strict=True)) if levels[model].chunks else {}
            for model, mask in known.items()
        },
        longest={
            model: max(runs[number] for number in continued) for model, runs in overlaps.items()
        }
        if continued
        else {},
    )


def flagged_share(ratios: Floats, clusters: Clusters, band: Band) -> Estimate:
    """Return the share of chunks that the rule flags, among those with a ratio."""
    judged = np.flatnonzero(np.isfinite(ratios))
    return share(band.holds(ratios)[judged].astype(float), clusters.at(judged))


def _control(
    audited: Ratioed, held_out: Ratioed | None, continuations: pa.Table
) -> tuple[Floats | None, Clusters, str, dict[str, Level]]:
    """Return the ratios of a model that never saw the chunks, what it is, and what controls write.

    The retrained model is the control of both models; without one, each model is its own, on texts
    that no model saw: what one writes by chance says nothing of the other.
    """

    def level(model: str, chunks: Sequence[Chunk], about: str) -> Level:
        own = {chunk.chunk for chunk in chunks}
        overlaps = best_overlaps(continuations, model)
        return control_level({at: run for at, run in overlaps.items() if at in own}, about)

    both = ("original", "unlearned")

    if audited.retrained is not None:
        name = "the retrained model on the same chunks"
        own = clusters_of(audited.chunks)
        same = level("retrained", audited.chunks, name)
        return audited.retrained, own, name, dict.fromkeys(both, same)
    if held_out is not None:
        name = "the unlearned model on texts that no model saw"
        weaker = f"{name}, which is weaker: unlearning may move texts of its own kind otherwise"
        own = clusters_of(held_out.chunks)
        each = "each model on texts that no model saw"
        levels = {model: level(model, held_out.chunks, each) for model in both}
        return held_out.unlearned, own, weaker, levels
    return None, Clusters(()), "nothing", dict.fromkeys(both, control_level({}, ""))


def likeness(continuations: pa.Table, flagged: Sequence[Chunk]) -> dict[str, Estimate]:
    """Return how like the truth each model's continuations of the flagged chunks are.

    The closest of a chunk's continuations counts, as in Shi et al. 2024, figure 7.
    """
    found = {}
    for model in dict.fromkeys(continuations["model"].to_pylist()):
        for measure in SIMILARITIES:
            best = best_overlaps(continuations, model, measure)
            own = [chunk for chunk in flagged if chunk.chunk in best]
            if own:
                values = [best[chunk.chunk] for chunk in own]
                found[f"{measure}_{model}"] = mean(values, clusters_of(own))
    return found


def question_findings(
    questions: Sequence[Chunk], ratios: Floats, continuations: pa.Table, band: Band
) -> dict[str, Estimate]:
    """Return the recall of questions that the rule keeps, of the rest, and the difference.

    As Shi et al. 2024, section 7.2.2: 0.23 for the kept against 0.10 for the rest. A question's
    value is the mean over its sampled answers; intervals are by groups of questions. Questions
    without a ratio are on neither side.
    """
    answers: dict[int, list[float]] = defaultdict(list)
    for row in continuations.select(["chunk", "rouge_l"]).to_pylist():
        answers[row["chunk"]].append(row["rouge_l"])
    judged = np.flatnonzero(np.isfinite(ratios)).tolist()
    own = [answers[questions[place].chunk] for place in judged]
    if not own or not own[0]:
        return {}
    clusters = Clusters(tuple(questions[place].group for place in judged))
    recall = np.array([sum(values) / len(values) for values in own])
    kept = band.holds(ratios)[judged]
    found = {
        name: mean(recall[side], clusters.at(np.flatnonzero(side)))
        for name, side in (("recall_kept", kept), ("recall_rest", ~kept))
    }
    return {**found, "recall_difference": difference(recall, kept.tolist(), clusters)}
