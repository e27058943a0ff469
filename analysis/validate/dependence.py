"""Does a score say more than the length of the text, or than the loss?

Rank correlations are taken within each dataset and weighted by its rows. Within strata of length,
each member is compared with the non-members of its dataset that are about as long; the interval is
that of the report: whole groups are drawn, and seeds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.arm import MODEL_FREE, Column, LoadedArm
from analysis.intervals.bootstrap import (
    Estimate,
    combine_seeds,
    draw_weights,
    no_estimate,
    percentile_bounds,
    placement_values,
)
from analysis.metrics import Floats
from analysis.settings import AnalysisSettings
from analysis.validate.label_checks import FEW
from detect.detectors.loss import mean_log_probability
from detect.ground_truth.ground_truth import ScoredModel
from detect.validate.finding import Finding
from detect.views import TEXT

SAME = 0.99
"""Rank correlation from which two scores are called the same."""
STRONG = 0.5
"""Rank correlation from which dependence on length is worth a line."""
_STRATA = 5
_FEWEST = 10
"""Rows of a side that a stratum has on average, at least."""


class WithinLength(NamedTuple):
    """The AUC among texts of all lengths and of like length, and the difference of the two."""

    plain: Estimate
    within: Estimate
    difference: Estimate
    strata: int


def rank_correlation(first: Floats, second: Floats, datasets: npt.NDArray[np.object_]) -> float:
    """Return Spearman's rank correlation within datasets, weighted by their rows.

    NaN where no dataset has three rows with both numbers, and different ones.
    """
    from scipy.stats import rankdata

    there = np.isfinite(first) & np.isfinite(second)
    total, weight = 0.0, 0
    for name in sorted(set(datasets)):
        rows = there & (datasets == name)
        if rows.sum() < 3:
            continue
        one, other = rankdata(first[rows]), rankdata(second[rows])
        if one.std() == 0 or other.std() == 0:
            continue
        total += float(np.corrcoef(one, other)[0, 1]) * int(rows.sum())
        weight += int(rows.sum())
    return total / weight if weight else float("nan")


def length_findings(
    models: Sequence[ScoredModel],
    loaded: Sequence[LoadedArm],
    column: Column,
    settings: AnalysisSettings,
) -> Finding:
    """Say what of a score is the length of the text.

    Args:
        models: one a seed.
        loaded: the same, with the column.
        column: the detector's setting.
        settings: of the analysis.
    """
    found = {
        "tokens": [_tokens(one) for one in models],
        "characters": [one.characters.astype(np.float64) for one in models],
    }
    correlations = {
        name: _mean_correlation(loaded, column, lengths) for name, lengths in found.items()
    }
    known = {name: value for name, value in correlations.items() if np.isfinite(value)}
    if not known:
        return Finding(
            check="length",
            severity="note",
            found="Its relation to the length of the text cannot be told: too few different "
            "scores or lengths.",
        )
    name = max(known, key=lambda one: abs(known[one]))
    shown = f"Rank correlation with the number of {name}: {known[name]:+.3f}."
    if abs(known[name]) > SAME:
        return Finding(
            check="length",
            severity="wrong",
            found=shown,
            meaning="The score is the length of the text, and says nothing of the model.",
            action="Divide by the number of tokens, or take a mean in place of a sum.",
        )
    parts = within_length(loaded, column, found[name], settings)
    if not np.isfinite(parts.within.value):
        return Finding(
            check="length",
            severity="note" if abs(known[name]) >= STRONG else "passed",
            found=f"{shown} {parts.within.reason}",
        )
    compared = (
        f"{shown} AUC {_text(parts.plain)}; among texts of like length ({parts.strata} strata) "
        f"{_text(parts.within)}, {parts.difference.value:+.3f} "
        f"[{parts.difference.low:+.3f}, {parts.difference.high:+.3f}]."
    )
    explained = parts.plain.low > 0.5 and parts.within.low <= 0.5 and parts.difference.high < 0
    if explained or (parts.difference.high < 0 and abs(known[name]) >= STRONG):
        return Finding(
            check="length",
            severity="look",
            found=compared,
            meaning="Length explains a part of what it finds: here members and non-members differ "
            "in length.",
            action="Report the AUC among texts of like length beside the other.",
        )
    if abs(known[name]) >= STRONG:
        return Finding(
            check="length",
            severity="note",
            found=compared,
            meaning="It ranks texts by length to a good part; where sides differ in length, that "
            "will look like membership.",
        )
    return Finding(check="length", severity="passed", found=compared)


def loss_finding(
    models: Sequence[ScoredModel], loaded: Sequence[LoadedArm], column: Column
) -> Finding:
    """Say whether a score ranks texts as the loss does."""
    if any(TEXT not in one.evidence.statistics for one in models):
        return Finding(
            check="loss", severity="note", found="There are no statistics to take a loss from."
        )
    losses = [
        np.array(
            [
                mean_log_probability(row) if len(row) else np.nan
                for row in one.evidence.statistics[TEXT]
            ]
        )
        for one in models
    ]
    value = _mean_correlation(loaded, column, losses)
    shown = f"Rank correlation with the mean log-probability (`loss`): {value:+.3f}."
    if value > SAME:
        return Finding(
            check="loss",
            severity="look",
            found=shown,
            meaning="It ranks texts as `loss` does: loss in other clothes.",
            action="Say what it adds; its paired difference to `loss` is in the table.",
        )
    if value < -SAME:
        return Finding(
            check="loss",
            severity="look",
            found=shown,
            meaning="It is the loss with its sign turned.",
            action="Return the negative of the score.",
        )
    return Finding(check="loss", severity="passed", found=shown)


def nearest_finding(
    loaded: Sequence[LoadedArm], column: Column, others: Sequence[Column]
) -> Finding | None:
    """Name the stored detector that ranks texts most alike, where it is nearly the same."""
    found: dict[str, float] = {}
    for other in others:
        if other.detector in MODEL_FREE or other.detector == "loss":
            continue
        values = [arm.scores[:, arm.index[other]] for arm in loaded]
        found[f"{other.detector} ({other.setting})"] = _mean_correlation(loaded, column, values)
    known = {name: value for name, value in found.items() if np.isfinite(value)}
    if not known:
        return None
    name = max(known, key=lambda one: abs(known[one]))
    if abs(known[name]) <= SAME:
        return None
    return Finding(
        check="other detectors",
        severity="note",
        found=f"Rank correlation with {name}: {known[name]:+.3f}.",
        meaning="It ranks texts as that detector does.",
        action="Say what it adds to it.",
    )


def within_length(
    loaded: Sequence[LoadedArm],
    column: Column,
    lengths: Sequence[Floats],
    settings: AnalysisSettings,
) -> WithinLength:
    """Return the AUC within strata of length beside the plain one, on the same rows.

    Each dataset of each arm is cut at quantiles of its texts' lengths, into as many strata as leave
    ten rows a side on average, at most five. Members without any non-member in their stratum, or
    non-members without a member, are left out of both.
    """
    plain, within, strata = [], [], 0
    for arm, length in zip(loaded, lengths, strict=True):
        scores = arm.scores[:, arm.index[column]]
        usable = arm.test & np.isfinite(scores) & np.isfinite(length)
        weights = _weights(arm, usable, settings)
        sums = np.zeros((2, settings.replicates + 1))
        total = np.zeros(settings.replicates + 1)
        for dataset in sorted(set(arm.dataset[usable])):
            rows = np.flatnonzero(usable & (arm.dataset == dataset))
            cuts = _strata(length[rows], arm.member[rows])
            if cuts is None:
                continue
            strata = max(strata, len(set(cuts.tolist())))
            kept = _both_sides(cuts, arm.member[rows])
            rows, cuts = rows[kept], cuts[kept]
            sums[0] += _placed(scores, arm.member, weights, rows)[0]
            for stratum in sorted(set(cuts.tolist())):
                placed, members = _placed(scores, arm.member, weights, rows[cuts == stratum])
                sums[1] += placed
                total += members
        with np.errstate(invalid="ignore", divide="ignore"):
            share = sums / np.where(total > 0, total, np.nan)
        plain.append(share[0])
        within.append(share[1])
    one = combine_seeds(np.stack(plain), seed=settings.seed)
    other = combine_seeds(np.stack(within), seed=settings.seed)
    if not np.isfinite(other[0]):
        few = no_estimate("Too few rows to compare texts of like length.")
        return WithinLength(few, few, few, 0)
    return WithinLength(
        _estimate(one, settings),
        _estimate(other, settings),
        _estimate(other - one, settings),
        strata,
    )


def _tokens(model: ScoredModel) -> Floats:
    if TEXT not in model.evidence.statistics:
        return np.full(len(model.rows), np.nan)
    return np.array([len(one) for one in model.evidence.statistics[TEXT]], dtype=np.float64)


def _mean_correlation(
    loaded: Sequence[LoadedArm], column: Column, values: Sequence[Floats]
) -> float:
    found = [
        rank_correlation(
            arm.scores[arm.test, arm.index[column]], one[arm.test], arm.dataset[arm.test]
        )
        for arm, one in zip(loaded, values, strict=True)
    ]
    known = [value for value in found if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


def _weights(arm: LoadedArm, usable: npt.NDArray[np.bool_], settings: AnalysisSettings) -> Floats:
    rows = np.flatnonzero(usable)
    weights = np.zeros((len(usable), settings.replicates + 1))
    if len(rows):
        weights[rows] = draw_weights(
            [f"{arm.dataset[row]}\0{'member' if arm.member[row] else 'nonmember'}" for row in rows],
            [str(arm.group[row]) for row in rows],
            replicates=settings.replicates,
            seed=settings.seed,
            cluster=str(arm.arm.seed),
        )
    return weights


def _strata(length: Floats, member: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64] | None:
    """Return the stratum of each row; None where there are too few rows for two."""
    smaller = min(int(member.sum()), int((~member).sum()))
    count = min(_STRATA, smaller // _FEWEST)
    if count < 2 or smaller < FEW // 2:
        return None
    edges = np.quantile(length, np.arange(1, count) / count)
    return np.searchsorted(edges, length, side="left")


def _both_sides(
    cuts: npt.NDArray[np.int64], member: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which rows lie in a stratum that has rows of both sides."""
    shared = set(cuts[member].tolist()) & set(cuts[~member].tolist())
    return np.array([cut in shared for cut in cuts.tolist()], dtype=np.bool_)


def _placed(
    scores: Floats, member: npt.NDArray[np.bool_], weights: Floats, rows: npt.NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return the weighted sum of the members' placement, and the members' weight, by replicate.

    A replicate that drew no non-member places nobody.
    """
    inside, outside = rows[member[rows]], rows[~member[rows]]
    placement = placement_values(
        scores[inside], scores[outside], weights[outside].astype(np.float32)
    )
    there = placement.total > 0
    below = np.where(there, np.nan_to_num(placement.below), 0.0)
    return (below * weights[inside]).sum(axis=0), weights[inside].sum(axis=0) * there


def _estimate(replicates: Floats, settings: AnalysisSettings) -> Estimate:
    bounds = percentile_bounds(replicates[None], confidence=settings.confidence)
    return Estimate(float(replicates[0]), float(bounds.low[0]), float(bounds.high[0]))


def _text(found: Estimate) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
