"""What an audit finds: every share with its interval, from scores and continuations.

Pure: tables in, numbers out; no model is asked. The rule is judged against two things that the
ratio does not decide: how often it flags chunks on a model that never saw them (false alarms), and
whether what it flags is what the unlearned model still writes (`remembered`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from analysis.intervals.estimate import Estimate, no_estimate
from analysis.metrics import Floats
from analysis.unlearning_audit.estimates import (
    Clusters,
    clusters_of,
    difference,
    mean,
    share,
)
from analysis.unlearning_audit.evidence import LONGEST, Chunks
from analysis.unlearning_audit.ratio import Band, Threshold, calibrated_band
from analysis.unlearning_audit.remembered import (
    Level,
    Written,
    control_level,
    share_false,
    share_missed,
    share_remembered,
    written_of,
)

SIMILARITIES = ("rouge_l", LONGEST)
NO_CONTROL = "there is neither a retrained model nor a held-out text"
_BOTH = ("original", "unlearned")


class Findings(NamedTuple):
    """The numbers of an audit."""

    shares: dict[str, Estimate]
    """Each quantity by its name in the table of findings."""
    control: str
    """On which chunks and which model false alarms were measured."""
    written: Mapping[str, Written]
    """By model: which of the audited chunks it remembers."""
    longest: Mapping[str, float]
    """By model: the longest run of true words that it writes of a chunk; empty if it wrote
    none."""


def find(audited: Chunks, held_out: Chunks, *, band: Band, rate: float) -> Findings:
    """Return the numbers of an audit.

    Args:
        audited: the chunks that should be forgotten. Those that are not suspicious and were
            continued are a sample of all that are not.
        held_out: chunks of texts that no model saw; none without any.
        band: of suspicious ratios.
        rate: of false alarms, that the calibrated band is to have.
    """
    clusters, ratios = audited.clusters(), audited.ratios["unlearned"]
    flags, judged = band.holds(ratios), np.isfinite(ratios)
    levels = _levels(audited, held_out)
    longest = {model: audited.closest(model) for model in _BOTH}
    continued = np.isfinite(longest["unlearned"])
    written = {
        model: written_of(runs, flags, continued, levels[model], clusters)
        for model, runs in longest.items()
    }
    mine = written["unlearned"]
    control, false_alarms = "nothing", no_estimate(NO_CONTROL)
    threshold = Threshold(None, false_alarms, false_alarms)
    if (of_unseen := _control(audited, held_out)) is not None:
        control, of_control, chunks = of_unseen
        false_alarms = share(band.flags(of_control), chunks.clusters())
        threshold = calibrated_band(of_control, chunks.clusters(), band.low, rate)
    nothing = no_estimate(threshold.edge.reason or "there is no calibrated band")
    then = threshold.band
    shares = {
        **{f"remembered_{model}": share_remembered(memory) for model, memory in written.items()},
        "flagged": share(band.flags(ratios), clusters),
        "false_alarms": false_alarms,
        "missed": share_missed(mine, flags, judged),
        "wrong": share_false(mine, flags),
        "calibrated_edge": threshold.edge,
        "calibrated_false_alarms": threshold.false_alarms,
        "calibrated_flagged": share(then.flags(ratios), clusters) if then else nothing,
        "calibrated_missed": share_missed(mine, then.holds(ratios), judged) if then else nothing,
    }
    if held_out.rows and "retrained" in audited.ratios:
        outside = band.flags(held_out.ratios["unlearned"])
        shares["flagged_holdout"] = share(outside, held_out.clusters())
    longest = {model: runs[continued] for model, runs in longest.items()}
    return Findings(
        shares,
        control,
        written,
        {model: float(np.nanmax(runs)) for model, runs in longest.items() if len(runs)},
    )


def counted_shares(
    ratios: Floats, retrained: Floats, known: Mapping[str, Floats], band: Band
) -> dict[str, Floats]:
    """Return what shares are counted over: 1 for a chunk that counts, 0, or NaN if it is not asked.

    Args:
        ratios: of the unlearned model, one a chunk.
        retrained: of the retrained model.
        known: by model, 1 for chunks that it remembers.
        band: of suspicious ratios.
    """
    flags, mine = band.flags(ratios), known["unlearned"]
    return {
        "flagged": flags,
        "false_alarms": band.flags(retrained),
        **{f"remembered_{model}": known[model] for model in _BOTH},
        "missed": np.where((mine == 1) & np.isfinite(flags), 1 - flags, np.nan),
        "wrong": np.where(flags == 1, 1 - mine, np.nan),
    }


def _control(audited: Chunks, held_out: Chunks) -> tuple[str, Floats, Chunks] | None:
    """Return a model that never saw some chunks: its name, its ratios, and the chunks."""
    if "retrained" in audited.ratios:
        return "the retrained model on the same chunks", audited.ratios["retrained"], audited
    if held_out.rows:
        name = (
            "the unlearned model on texts that no model saw, which is weaker: unlearning may move "
            "texts of its own kind otherwise"
        )
        return name, held_out.ratios["unlearned"], held_out
    return None


def _levels(audited: Chunks, held_out: Chunks) -> dict[str, Level]:
    """Return by model what its control writes.

    The retrained model is the control of both models; without one, each model is its own, on texts
    that no model saw: what one writes by chance says nothing of the other.
    """
    if "retrained" in audited.ratios:
        about = "the retrained model on the same chunks"
        return dict.fromkeys(_BOTH, control_level(audited.closest("retrained"), about))
    about = "each model on texts that no model saw" if held_out.rows else ""
    return {model: control_level(held_out.closest(model), about) for model in _BOTH}


def likeness(audited: Chunks, flagged: Floats) -> dict[str, Estimate]:
    """Return how like the truth each model's continuations of the flagged chunks are.

    The closest of a chunk's continuations counts, as in Shi et al. 2024, figure 7.
    """
    recalls = {}
    for model in dict.fromkeys(audited.continuations["model"].to_pylist()):
        for column in SIMILARITIES:
            best = audited.closest(model, column)
            places = np.flatnonzero((flagged == 1) & np.isfinite(best))
            if len(places):
                clusters = clusters_of([audited.rows[at] for at in places.tolist()])
                recalls[f"{column}_{model}"] = mean(best[places], clusters)
    return recalls


def question_findings(questions: Chunks, band: Band) -> dict[str, Estimate]:
    """Return the recall of questions that the rule keeps, of the rest, and the difference.

    As Shi et al. 2024, section 7.2.2: 0.23 for the kept against 0.10 for the rest. A question's
    value is the mean over its sampled answers; intervals are by groups of questions. Questions
    without a ratio are on neither side.
    """
    flags = band.flags(questions.ratios["unlearned"])
    answers = questions.written("unlearned", "rouge_l")
    recall = np.array([np.mean(each) if each else np.nan for each in answers])
    recall[~np.isfinite(flags)] = np.nan
    if not np.isfinite(recall).any():
        return {}
    clusters = Clusters(tuple(row.group for row in questions.rows))
    sides = {"recall_kept": flags == 1, "recall_rest": flags == 0}
    means = {name: mean(np.where(side, recall, np.nan), clusters) for name, side in sides.items()}
    return {**means, "recall_difference": difference(recall, flags == 1, clusters)}
