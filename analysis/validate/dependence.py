"""Does a score carry more information than the length of the text, or than the loss?

Rank correlations are taken within each dataset and weighted by its rows. Within strata of length,
each member is compared with the non-members of its dataset that are about as long; intervals are
those of the report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.arm import MODEL_FREE, DetectorColumn, LoadedArm
from analysis.auc_cells import cohort_rows, compared_sides
from analysis.intervals.clustered import Part
from analysis.intervals.ends import IntervalMethod
from analysis.intervals.estimate import Estimate, no_estimate
from analysis.intervals.influence import Counts, Floats, Mask, Sample
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import Rows, auc_numbers
from analysis.settings import AnalysisSettings
from analysis.unit import AUC, DIFFERENCE
from analysis.validate.checks import FEW, CheckedSetting, CheckFinding
from detect.detectors.loss import mean_log_probability
from detect.ground_truth.ground_truth import ScoredModel
from detect.views import TEXT

SAME = 0.99
"""Rank correlation from which two scores are called the same."""
STRONG = 0.5
"""Rank correlation from which dependence on length is worth a line."""
_STRATA = 5
_FEWEST = 10
"""Rows of a side that a stratum has on average, at least."""


def rank_correlation(first: Floats, second: Floats, datasets: npt.NDArray[np.object_]) -> float:
    """Return Spearman's rank correlation within datasets, weighted by their rows.

    NaN if no dataset has three rows with both numbers, and different ones.
    """
    from scipy.stats import rankdata

    finite = np.isfinite(first) & np.isfinite(second)
    total, weight = 0.0, 0
    for name in sorted(set(datasets)):
        rows = finite & (datasets == name)
        if rows.sum() < 3:
            continue
        first_ranks, second_ranks = rankdata(first[rows]), rankdata(second[rows])
        if first_ranks.std() == 0 or second_ranks.std() == 0:
            continue
        total += float(np.corrcoef(first_ranks, second_ranks)[0, 1]) * int(rows.sum())
        weight += int(rows.sum())
    return total / weight if weight else float("nan")


def length_findings(subject: CheckedSetting) -> CheckFinding:
    """Check how much of a score is explained by the length of the text."""
    finding = partial(CheckFinding, "length")
    lengths = {
        "tokens": [_tokens(model) for model in subject.models],
        "characters": [
            np.array([len(row.text) for row in model.rows], dtype=np.float64)
            for model in subject.models
        ],
    }
    nearest = _find_nearest(
        {name: _mean_correlation(subject, values) for name, values in lengths.items()}
    )
    if nearest is None:
        return finding(
            "note",
            "Its relation to the length of the text is unknown: too few "
            "different scores or lengths.",
        )
    name, correlation = nearest
    relation = f"Rank correlation with the number of {name}: {correlation:+.3f}."
    if abs(correlation) > SAME:
        return finding(
            "wrong",
            relation,
            "The score is the length of the text, and does not depend on the model.",
            "Divide by the number of tokens, or take a mean in place of a sum.",
        )
    strong = abs(correlation) >= STRONG
    plain, within, gap, strata = within_length(subject, lengths[name])
    if not np.isfinite(within.value):
        return finding("note" if strong else "passed", f"{relation} {within.reason}")
    aucs = [AUC.brief(estimate, no_interval="(no interval)") for estimate in (plain, within)]
    compared = (
        f"{relation} AUC {aucs[0]}; among texts of like length ({strata} strata) {aucs[1]}, "
        f"{DIFFERENCE.brief(gap)}."
    )
    explained = plain.low > 0.5 and within.low <= 0.5
    if gap.high < 0 and (explained or strong):
        return finding(
            "look",
            compared,
            "Length explains a part of what it finds: here members and non-members differ in "
            "length.",
            "Report the AUC among texts of like length alongside the other.",
        )
    if strong:
        return finding(
            "note",
            compared,
            "It ranks texts largely by length; if sides differ in length, "
            "that will look like membership.",
        )
    return finding("passed", compared)


def loss_finding(subject: CheckedSetting) -> CheckFinding:
    """Check whether a score ranks texts as the loss does."""
    finding = partial(CheckFinding, "loss")
    models = subject.models
    if any(TEXT not in model.evidence.statistics for model in models):
        return finding("note", "There are no statistics to compute a loss from.")
    tables = [model.evidence.statistics[TEXT] for model in models]
    losses = [
        np.array([mean_log_probability(row) if len(row) else np.nan for row in table])
        for table in tables
    ]
    value = _mean_correlation(subject, losses)
    if np.isnan(value):
        return finding("note", "Too few different scores to compare with the loss.")
    relation = f"Rank correlation with the mean log-probability (`loss`): {value:+.3f}."
    if value > SAME:
        return finding(
            "look",
            relation,
            "It ranks texts as `loss` does: a variant of loss.",
            "State what it adds; its paired difference to `loss` is in the table.",
        )
    if value < -SAME:
        return finding(
            "look",
            relation,
            "It is the loss with its sign reversed.",
            "Return the negative of the score.",
        )
    return finding("passed", relation)


def nearest_finding(
    subject: CheckedSetting, others: Sequence[DetectorColumn]
) -> CheckFinding | None:
    """Name the stored detector with the most similar ranking, if it is nearly the same."""
    correlations = {
        f"{other.detector} ({other.setting})": _mean_correlation(
            subject, subject._replace(column=other).scores()
        )
        for other in others
        if other.detector not in MODEL_FREE and other.detector != "loss"
    }
    nearest = _find_nearest(correlations)
    if nearest is None or abs(nearest[1]) <= SAME:
        return None
    return CheckFinding(
        "other detectors",
        "note",
        f"Rank correlation with {nearest[0]}: {nearest[1]:+.3f}.",
        "It ranks texts as that detector does.",
        "State what it adds to that detector.",
    )


def _find_nearest(correlations: Mapping[str, float]) -> tuple[str, float] | None:
    """Return the strongest correlation with its name; None if there is none."""
    finite = [(name, value) for name, value in correlations.items() if np.isfinite(value)]
    return max(finite, key=lambda pair: abs(pair[1]), default=None)


def within_length(
    subject: CheckedSetting, lengths: Sequence[Floats]
) -> tuple[Estimate, Estimate, Estimate, int]:
    """Return the AUC within strata of length and the plain one, on the same rows.

    Each dataset of each arm is cut at quantiles of its texts' lengths, into as many strata as leave
    ten rows a side on average, at most five. Members without any non-member in their stratum, or
    non-members without a member, are omitted from both, as are members that drew no copy. If none
    is, the plain AUC is that of the report, with its interval.

    Returns:
        The AUC among texts of all lengths, that among texts of like length, the difference of the
        two, and the number of strata.
    """
    loaded, settings = subject.loaded, subject.settings
    arm_values = zip(loaded, subject.scores(), lengths, strict=True)
    cuts = np.concatenate([_cuts(*each, settings) for each in arm_values])
    rows = cohort_rows(loaded)
    copies = np.concatenate([arm.copies for arm in loaded])
    inside, outside = compared_sides(rows.member, copies, settings)
    rows = replace(rows, member=inside & (cuts >= 0), nonmember=outside & (cuts >= 0))
    scores = np.concatenate(subject.scores())
    plain = auc_numbers(rows, scores, least=1)
    within = _strata_aucs(rows, scores, cuts)
    if not any(plain.seeds):
        few = no_estimate("Too few rows to compare texts of like length.")
        return few, few, few, 0
    plain_auc, within_auc, gap = (
        numbers.estimates(confidence=settings.confidence)[0]
        for numbers in (plain, within, within - plain)
    )
    strata = [
        len(np.unique(cuts[at][cuts[at] >= 0])) for seed in rows.places for at in seed.values()
    ]
    return plain_auc, within_auc, gap, max(strata)


def _cuts(arm: LoadedArm, scores: Floats, length: Floats, settings: AnalysisSettings) -> Counts:
    """Return the stratum of each row within its dataset; -1 for rows that are left out."""
    inside, outside = compared_sides(arm.member, arm.copies, settings)
    inside = inside & (arm.copies > 0)
    usable = arm.test & (inside | outside) & np.isfinite(scores + length)
    strata = np.full(len(usable), -1)
    for dataset in set(arm.dataset[usable]):
        rows = np.flatnonzero(usable & (arm.dataset == dataset))
        cuts = _strata(length[rows], inside[rows])
        if cuts is not None:
            both = np.intersect1d(cuts[inside[rows]], cuts[~inside[rows]])
            strata[rows] = np.where(np.isin(cuts, both), cuts, -1)
    return strata


def _strata_aucs(rows: Rows, scores: Floats, cuts: Counts) -> Numbers:
    """Return the means over members of the AUCs of all strata; groups may be in several."""
    masks = [cuts == cut for cut in range(_STRATA)]
    cells = [replace(rows, member=rows.member & m, nonmember=rows.nonmember & m) for m in masks]
    strata = [auc_numbers(cell, scores, least=1) for cell in cells]
    seeds = [
        {
            name: _pool_strata([seed[name] for seed in strata_parts if name in seed])
            for name in dict.fromkeys(name for seed in strata_parts for name in seed)
        }
        for strata_parts in zip(*(numbers.seeds for numbers in strata), strict=True)
    ]
    return Numbers(seeds, IntervalMethod.AUC)


def _pool_strata(parts: Sequence[Part]) -> Part:
    """Return the mean of AUCs over members."""
    weight = np.sum([part.weight for part in parts], axis=0)
    of_rows = [0.0 if part.sample.of_rows is None else part.sample.of_rows for part in parts]
    columns: list[Any] = [
        [part.weight / weight * part.sample.value for part in parts],
        [(part.weight / weight)[:, None] * part.sample.influence for part in parts],
        [part.sample.freedom for part in parts],
        [part.sample.groups for part in parts],
        [(part.weight / weight) ** 2 * own for part, own in zip(parts, of_rows, strict=True)],
    ]
    means: list[Any] = [sum(column) for column in columns]
    return Part(Sample(*means), weight)


def _tokens(model: ScoredModel) -> Floats:
    if TEXT not in model.evidence.statistics:
        return np.full(len(model.rows), np.nan)
    return np.array([len(table) for table in model.evidence.statistics[TEXT]], dtype=np.float64)


def _mean_correlation(subject: CheckedSetting, values: Sequence[Floats]) -> float:
    correlations = [
        rank_correlation(scores[arm.test], arm_values[arm.test], arm.dataset[arm.test])
        for arm, scores, arm_values in zip(subject.loaded, subject.scores(), values, strict=True)
    ]
    finite = [value for value in correlations if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


def _strata(length: Floats, member: Mask) -> Counts | None:
    """Return the stratum of each row; None if there are too few rows for two."""
    smaller = min(int(member.sum()), int((~member).sum()))
    count = min(_STRATA, smaller // _FEWEST)
    if count < 2 or smaller < FEW // 2:
        return None
    edges = np.quantile(length, np.arange(1, count) / count)
    return np.searchsorted(edges, length, side="left")
