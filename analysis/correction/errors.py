"""How far each estimator is from the accuracy without contamination, over many draws.

A draw takes a calibration set and a test set from a dataset's items (`analysis.correction.draws`).
The clean probability is calibrated on the non-members of the calibration set, whose answers
contamination did not change; without a base model it is their accuracy. Outcomes: `contaminated`,
the answers of the arm; `hybrid`, on non-members those of the target's model, which isolates
contamination from all else that training changed.

An error is the mean over draws of estimate minus target. Its interval linearises each estimator at
each draw's calibration and averages what each group of items moves it by, sides apart, because
their shares are fixed; from there it is that of any mean (`analysis.intervals`). The threshold of
`largest_gain` is itself chosen from the answers, which makes it vary more: its linearisation is
widened by the ratio of two bootstraps over groups, one that chooses the threshold again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import DetectorColumn
from analysis.correction import estimators
from analysis.correction.calibration import fit_platt
from analysis.correction.draws import Draws, draw_sets, group_orders, resampled_counts
from analysis.intervals.clustered import Part
from analysis.intervals.ends import IntervalMethod
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Counts, Floats, Mask, Sample
from analysis.intervals.numbers import Numbers
from analysis.settings import AnalysisSettings
from inject import keyed

OUTCOMES = ("contaminated", "hybrid")
DRAWS = 200
SIZES = (10, 20, 50, 100)
"""Of the calibration set."""
SHARES = (0.1, 0.3, 0.5)
"""Of contaminated items in the corrected test set."""
_DRAWN = "score correction"
_CHOSEN_AGAIN = (8, 40)
"""Draws and replicates of the bootstraps that choose the threshold of `largest_gain` again."""
Key = tuple[str, str]
"""Outcome and estimator."""


class Items(NamedTuple):
    """The items of one dataset under one seed's models, [n] each."""

    member: Mask
    copies: Counts
    group: Counts
    """Number of the group; the same in every seed."""
    right: Mapping[str, Floats]
    """Which answers are right, by outcome."""
    clean_right: Floats
    chance: Floats
    """Of guessing the right answer."""
    clean_logit: Floats
    """Log-odds of the base model's probability of the right answer; NaN without a base model."""
    scores: Mapping[DetectorColumn, Floats]


SeedErrors = tuple[Mapping[Key, Floats], Part]
"""The errors of some estimators under one seed's models: of each draw, [draws], NaN if it is
undefined; and their means, in the same order."""


def dataset_errors(
    seeds: Sequence[Items], settings: AnalysisSettings, *, draws: int = DRAWS
) -> Iterator[dict[str, Any]]:
    """Yield the errors of one dataset by size, detector (first none), share and estimator.

    Args:
        seeds: its items under each seed's models.
        settings: the confidence, and the seed of the draws.
        draws: how many.
    """
    random = keyed.generator(settings.seed, keyed.Stream.BOOTSTRAP, keyed.item_key(_DRAWN))
    orders = [group_orders(items.group, draws, random) for items in seeds]
    n_groups = max(int(items.group.max()) for items in seeds) + 1
    for size in SIZES:
        sets = {s: each for s in SHARES if (each := _all_sets(seeds, orders, size, s))}
        if not sets:
            continue
        # Test sets of every share have the same calibration sets.
        calibration = [each.calibration for each in next(iter(sets.values()))]
        clean = [_clean(*each) for each in zip(seeds, calibration, strict=True)]
        naive: dict[tuple[float, str], Estimate] = {}
        for column in (None, *seeds[0].scores):
            member = [_member(*each, column) for each in zip(seeds, calibration, strict=True)]
            for share, of_seeds in sets.items():
                errors = [
                    seed_errors(*each, n_groups)
                    for each in zip(seeds, of_seeds, member, clean, strict=True)
                ]
                for row, error in _rows(errors, settings):
                    first = naive.setdefault((share, row["outcome"]), error)
                    yield {
                        "calibration_items": size,
                        "contaminated_share": share,
                        "detector": column and column.detector,
                        "setting": column and column.setting,
                        "unscored": sum(
                            int(np.isnan(items.scores[column]).sum()) for items in seeds if column
                        ),
                        "removed": _removed(error, first),
                        **row,
                    }


def _all_sets(
    seeds: Sequence[Items], orders: Sequence[Floats], size: int, share: float
) -> list[Draws]:
    """Return the sets of every seed; none if a seed has too few items."""
    sets = [
        draw_sets(items.member, items.group, order, size=size, share=share)
        for items, order in zip(seeds, orders, strict=True)
    ]
    complete = [each for each in sets if each is not None]
    return complete if len(complete) == len(sets) else []


def _member(items: Items, at: Counts, column: DetectorColumn | None) -> Floats | None:
    """Return the probability of membership by a detector, [draws, n]; None without a detector."""
    if column is None:
        return None
    return _calibrated(items.scores[column], items.member, at, np.ones(at.shape))


def _clean(items: Items, at: Counts) -> dict[str, Floats]:
    """Return a clean model's probability of a right answer, [draws, n], by outcome."""
    unaffected = (~items.member[at]).astype(np.float64)
    return {
        outcome: _calibrated(items.clean_logit, right > 0, at, unaffected)
        for outcome, right in items.right.items()
    }


def _calibrated(values: Floats, positive: Mask, at: Counts, counts: Floats) -> Floats:
    return fit_platt(values[at], positive[at], counts).probabilities(values[None])


def seed_errors(
    items: Items, sets: Draws, member: Floats | None, clean: Mapping[str, Floats], n_groups: int
) -> SeedErrors:
    """Return the errors of a detector's estimators; without one, of those that use no scores.

    Args:
        items: of the seed.
        sets: its draws.
        member, clean: probabilities of all items in each draw, [draws, n]; the latter by outcome.
        n_groups: over all seeds.
    """
    at = sets.corrected
    ones, target = np.ones(at.shape), items.clean_right[at]
    goal = target.mean(axis=1, keepdims=True)
    by_draw: dict[Key, Floats] = {}
    influence = []
    for outcome, right in items.right.items():
        expected = np.take_along_axis(clean[outcome], at, axis=1)
        if member is None:
            terms = estimators.score_free_terms(right[at], expected, ones, items.member[at])
        else:
            probability = np.take_along_axis(member, at, axis=1)
            terms = estimators.score_terms(right[at], probability, expected, ones)
        for name, each in terms.items():
            value = estimators.estimate(each)
            by_draw[outcome, name] = value - goal[:, 0]
            moved = estimators.item_influence(each, value) - (target - goal) / at.shape[1]
            by_group = _by_group(moved, sets, items.group[at], n_groups)
            if name == estimators.LARGEST_GAIN:
                by_group *= _choice_ratio(right[at], probability, target, items, sets)
            influence.append(by_group)
    sides = [np.unique(items.group[side]) for side in (items.member, ~items.member)]
    counts = np.array([[len(groups)] for groups in sides])
    scale = np.sqrt(counts / np.maximum(counts - 1, 1))
    numbers = np.ones(len(by_draw))
    sample = Sample(
        np.array([_mean(errors) for errors in by_draw.values()]),
        np.stack(influence, axis=1) * scale[:, :, None],
        np.maximum(counts - 1.0, 1.0) * numbers,
        counts * numbers.astype(np.int64),
    )
    members = int(items.member.sum())
    part = Part(sample, numbers, np.full(len(numbers), members), len(items.member) - members)
    return by_draw, part


def _choice_ratio(
    right: Floats, member: Floats, target: Floats, items: Items, sets: Draws
) -> float:
    """Return the ratio, at least 1, by which an error varies more if its threshold is chosen again.

    Args:
        right, member, target: of the corrected items, [draws, items].
        items: of the seed.
        sets: its draws.
    """
    draws, replicates = _CHOSEN_AGAIN
    right, member, target = right[:draws], member[:draws], target[:draws]
    at = sets.corrected[:draws]
    random = keyed.generator(0, keyed.Stream.BOOTSTRAP, keyed.item_key(f"{_DRAWN}, threshold"))
    chosen = estimators.below_threshold(right, member, np.ones(at.shape))
    sides = (items.member, ~items.member)
    times = resampled_counts(items.group, sides, replicates, random)
    errors = np.zeros((2, replicates))
    for replicate, counts in enumerate(times[:, at]):
        goal = estimators.estimate(estimators.Terms(counts, target))
        for way, below in enumerate((chosen, estimators.below_threshold(right, member, counts))):
            score = estimators.estimate(estimators.Terms(counts * below, right))
            errors[way, replicate] = _mean(score - goal)
    fixed, again = np.nanstd(errors, axis=1)
    return max(float(again / fixed), 1.0) if fixed > 0 else 1.0


def _by_group(moved: Floats, sets: Draws, group: Counts, n_groups: int) -> Floats:
    """Return the mean over draws of what each group moves an error by, [2, n_groups].

    Args:
        moved: by the corrected items, [draws, items]; NaN in draws without an estimate.
        sets: the draws.
        group: of the corrected items.
        n_groups: how many there are.
    """
    defined = np.isfinite(moved).all(axis=1)
    sums = []
    for side in (slice(None, sets.members), slice(sets.members, None)):
        part = moved[defined, side]
        centred = part - part.mean(axis=1, keepdims=True)
        sums.append(np.bincount(group[defined, side].ravel(), centred.ravel(), n_groups))
    return np.stack(sums) / max(int(defined.sum()), 1)


def _mean(errors: Floats) -> float:
    defined = errors[np.isfinite(errors)]
    return float(defined.mean()) if len(defined) else np.nan


def _rows(
    seeds: Sequence[SeedErrors], settings: AnalysisSettings
) -> Iterator[tuple[dict[str, Any], Estimate]]:
    numbers = Numbers([{"": part} for _, part in seeds], IntervalMethod.SLOPE)
    estimates = numbers.estimates(confidence=settings.confidence)
    for key, error in zip(seeds[0][0], estimates, strict=True):
        by_draw = np.concatenate([errors[key] for errors, _ in seeds])
        row = {
            **dict(zip(("outcome", "estimator"), key, strict=True)),
            **error.row(),
            "rmse": float(np.sqrt(_mean(by_draw**2))),
            "draws": int(np.isfinite(by_draw).sum()),
        }
        yield row, error


def _removed(error: Estimate, naive: Estimate) -> float | None:
    """Return the share of the inflation that is removed; None if that is within noise."""
    if not naive.available or naive.contains(0) or not np.isfinite(error.value):
        return None
    return 1 - abs(error.value) / abs(naive.value)
