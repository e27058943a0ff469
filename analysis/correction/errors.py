"""How far each estimator is from the accuracy without contamination, over many draws.

A draw takes a calibration set and a test set from a dataset's items (`analysis.correction.draws`).
The clean probability is calibrated on the non-members of the calibration set, whose answers
contamination did not change. Outcomes: `contaminated`, the answers of the arm; `hybrid`, on
non-members those of the target's model, which isolates contamination from all else that training
changed.

An error is the mean over draws of estimate minus target. Its interval linearises each estimator at
each draw's calibration and averages what each group of items moves it by, sides apart, because their
shares are fixed; from there it is that of any mean (`analysis.intervals`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from analysis.arm import Column
from analysis.correction.calibration import Platt, fit_platt
from analysis.correction.draws import Draws, draw_sets, group_orders
from analysis.correction.estimators import (
    Terms,
    estimate,
    item_influence,
    score_free_terms,
    score_terms,
)
from analysis.intervals.clustered import Part
from analysis.intervals.ends import Scale
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


@dataclass(frozen=True, kw_only=True)
class Items:
    """The items of one dataset under one seed's models, [n] each."""

    seed: int
    member: Mask
    group: Counts
    """Number of the group; the same in every seed."""
    right: Floats
    clean_right: Floats
    chance: Floats
    """Of guessing the right answer."""
    clean_logit: Floats | None
    """Log-odds of the base model's probability of the right answer; None without a base model."""
    scores: Mapping[Column, Floats]

    @cached_property
    def outcomes(self) -> Mapping[str, Floats]:
        """Which answers are right, by outcome."""
        hybrid = np.where(self.member, self.right, self.clean_right)
        return dict(zip(OUTCOMES, (self.right, hybrid), strict=True))

    def part(self, errors: "_Errors", n_groups: int) -> Part:
        """Return mean errors with what each group moves them by."""
        sides = [self.group[self.member], self.group[~self.member]]
        counts = np.array([[len(np.unique(group))] for group in sides])
        ones = np.ones(len(errors.names))
        influence = np.zeros((2, len(ones), n_groups))
        for side, at in np.ndindex(2, len(ones)):
            influence[side, at] = np.bincount(
                self.group, errors.influence[side, at], minlength=n_groups
            )
        influence *= np.sqrt(counts / np.maximum(counts - 1, 1))[:, :, None]
        freedom = np.maximum(counts - 1.0, 1.0) * ones
        sample = Sample(errors.mean, influence, freedom, counts * ones.astype(np.int64))
        members = int(self.member.sum())
        return Part(sample, ones, np.full(len(ones), members), len(self.member) - members)


class _Errors(NamedTuple):
    """The errors of some estimators in all draws of one seed."""

    names: Sequence[tuple[str, str]]
    """Outcome and estimator."""
    by_draw: Floats
    """[names, draws]; NaN if the estimator is undefined."""
    influence: Floats
    """Mean over draws, by item, of members and of non-members, [2, names, n]."""

    @property
    def mean(self) -> Floats:
        """The mean over draws; NaN if no draw defines it."""
        count = np.isfinite(self.by_draw).sum(axis=1)
        return np.nansum(self.by_draw, axis=1) / np.where(count, count, np.nan)


class _Calibration:
    """The calibration sets of all draws of one size; test sets of any share use the same fits."""

    def __init__(self, items: Items, sets: Draws) -> None:
        at = self._at = sets.calibration
        self.items, self._scores = items, dict[Column, Platt]()
        unaffected = (~items.member[at]).astype(float)
        self._clean = {
            outcome: fit_platt(items.clean_logit[at], right[at] > 0, unaffected)
            for outcome, right in items.outcomes.items()
            if items.clean_logit is not None
        }

    def member(self, column: Column, at: Counts) -> Floats:
        """Return the probability of membership of some items by a detector's scores."""
        scores = self.items.scores[column]
        if column not in self._scores:
            ones = np.ones(self._at.shape)
            self._scores[column] = fit_platt(scores[self._at], self.items.member[self._at], ones)
        return self._scores[column].probabilities(scores[at])

    def clean(self, outcome: str, at: Counts) -> Floats | None:
        """Return the clean model's probability of a right answer; None if there is none."""
        if self.items.clean_logit is None:
            return None
        return self._clean[outcome].probabilities(self.items.clean_logit[at])


def dataset_errors(
    seeds: Sequence[Items], settings: AnalysisSettings, *, draws: int = DRAWS
) -> Iterator[dict[str, Any]]:
    """Yield the errors of one dataset by size, share, outcome, detector and estimator.

    Args:
        seeds: its items under each seed's models.
        settings: the confidence, and the seed of the draws.
        draws: how many.
    """
    orders = [group_orders(items.group, draws, _generator(items, settings)) for items in seeds]
    for size in SIZES:
        calibrations: list[_Calibration] = []
        for share in SHARES:
            sets = [
                draw_sets(items.member, items.group, order, size=size, share=share)
                for items, order in zip(seeds, orders, strict=True)
            ]
            usable = [each for each in sets if each is not None]
            if len(usable) < len(seeds):
                continue
            calibrations = calibrations or [*map(_Calibration, seeds, usable)]
            place = {"calibration_items": size, "contaminated_share": share}
            for row in _errors(calibrations, usable, settings):
                yield {**place, **row}


def _generator(items: Items, settings: AnalysisSettings) -> np.random.Generator:
    key = keyed.item_key(f"score correction {items.seed}")
    return keyed.generator(settings.seed, keyed.Stream.BOOTSTRAP, key)


def _errors(
    calibrations: Sequence[_Calibration], sets: Sequence[Draws], settings: AnalysisSettings
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one size and share, first those that use no detector."""
    seeds = [calibration.items for calibration in calibrations]
    n_groups = max(int(items.group.max()) for items in seeds) + 1
    target = float(
        np.mean([s.clean_right[d.corrected].mean() for s, d in zip(seeds, sets, strict=True)])
    )
    naive: dict[str, Estimate] = {}
    for column in (None, *seeds[0].scores):
        errors = [_seed_errors(*pair, column) for pair in zip(calibrations, sets, strict=True)]
        parts = [{"": s.part(each, n_groups)} for s, each in zip(seeds, errors, strict=True)]
        estimates = Numbers(parts, Scale.SLOPE).estimates(confidence=settings.confidence)
        by_draw = np.concatenate([each.by_draw for each in errors], axis=1)
        unscored = sum(int(np.isnan(s.scores[column]).sum()) for s in seeds) if column else 0
        for (outcome, name), error, of_draws in zip(errors[0].names, estimates, by_draw, strict=True):
            naive.setdefault(outcome, error)
            defined = of_draws[np.isfinite(of_draws)]
            yield {
                "outcome": outcome,
                "estimator": name,
                "detector": column and column.detector,
                "setting": column and column.setting,
                **error.row(),
                "rmse": float(np.sqrt(np.mean(defined**2))) if len(defined) else None,
                "removed": _removed(error, naive[outcome]),
                "target": target,
                "draws": len(defined),
                "unscored": unscored,
            }


def _removed(error: Estimate, naive: Estimate) -> float | None:
    """Return the share of the inflation that is removed; None if that is within noise."""
    if not naive.available or naive.contains(0) or not np.isfinite(error.value):
        return None
    return 1 - abs(error.value) / abs(naive.value)


def _seed_errors(calibration: _Calibration, sets: Draws, column: Column | None) -> _Errors:
    """Return the errors of one seed: of a detector's estimators, or of those that use none."""
    items, at = calibration.items, sets.corrected
    ones, target = np.ones(at.shape), items.clean_right[at]
    member = None if column is None else calibration.member(column, at)
    terms: dict[tuple[str, str], Terms] = {}
    for outcome, right in items.outcomes.items():
        clean = calibration.clean(outcome, at)
        of_outcome = (
            score_free_terms(right[at], clean, ones, items.member[at])
            if member is None
            else score_terms(right[at], member, clean, ones)
        )
        terms |= {(outcome, name): each for name, each in of_outcome.items()}
    goal = target.mean(axis=1)
    missed = (target - goal[:, None]) / at.shape[1]
    values = [estimate(each) for each in terms.values()]
    moved = (
        item_influence(each, value) - missed
        for each, value in zip(terms.values(), values, strict=True)
    )
    influence = [_by_item(each, sets, len(items.member)) for each in moved]
    return _Errors([*terms], np.stack(values) - goal, np.stack(influence, axis=1))


def _by_item(moved: Floats, sets: Draws, n_items: int) -> Floats:
    """Return the mean over draws of what each item moves an error by, [2, n_items].

    Args:
        moved: by the corrected items, [draws, items]; NaN in draws without an estimate.
        sets: the draws.
        n_items: of the dataset.
    """
    defined = np.isfinite(moved).all(axis=1)
    sums = []
    for side in (slice(None, sets.members), slice(sets.members, None)):
        part, at = moved[defined, side], sets.corrected[defined, side]
        centred = part - part.mean(axis=1, keepdims=True)
        sums.append(np.bincount(at.ravel(), centred.ravel(), minlength=n_items))
    return np.stack(sums) / max(int(defined.sum()), 1)

