"""Simulated studies of factors with known truth, and how often the results are correct.

Scores are normal. A row has 70 % of its variance in all seeds and 30 % new in each; rows of one
group share half of either; groups are dealt to the sides again for each seed. Arms of one seed
share a part of their scores.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, t

from analysis.factors.contrasts import best_set, contrasts
from analysis.factors.lines import REACHED, FittedLine, fit_line
from analysis.factors.power import Assumptions, auc_power, difference_power
from analysis.intervals.influence import Counts, Floats, Mask
from analysis.intervals.joint import BySeed
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import Rows, auc_numbers
from inject.keyed import Stream, generator, item_key
from scripts.calibration.simulation import OWN, SHARED

DOSES = (1, 4, 16, 64)


class LineDesign(NamedTuple):
    """A study of one arm with several doses."""

    rows: int
    """On each side."""
    slope: float
    """Of the probit of AUC with log2(1 + copies)."""
    seeds: int = 1
    deviation: float = 0.0
    """Of the slope over seeds."""
    group: int = 1
    intercept: float = 0.0


class ArmsDesign(NamedTuple):
    """A study of several arms."""

    rows: int
    aucs: tuple[float, ...]
    seeds: int = 1
    deviation: float = 0.0
    """Of each arm's AUC over seeds, at an AUC of 0.5; of each arm for itself."""
    group: int = 1
    together: float = 0.5
    """Share of the scores' variance that the arms of a seed have in common."""


class Counted(NamedTuple):
    """Counts of correct statements."""

    slope: float
    reach: float
    refused: float
    """Studies in which the test of the line's shape rejected a correct shape."""
    none: float
    """Studies without a line."""


class Scored(NamedTuple):
    """The rows of one seed."""

    scores: Floats
    member: Mask
    within: Mask
    """Which rows each number is of, [K, rows]."""


def study_numbers(seeds: Sequence[Scored], group: Counts, *, jackknife: bool = True) -> Numbers:
    """Return the AUCs of the same rows under several seeds.

    Args:
        seeds: the rows under each.
        group: of each row.
        jackknife: as for `auc_numbers`.
    """
    scores, member, within = (np.concatenate(part, axis=-1) for part in zip(*seeds, strict=True))
    number = np.repeat(np.arange(len(seeds)), len(group))
    rows = Rows.of(np.tile(group, len(seeds)), seed=number, member=member)
    return auc_numbers(rows, scores, within, least=1, jackknife=jackknife)


def draw_doses(design: LineDesign, random: np.random.Generator) -> tuple[BySeed, Floats]:
    """Return the AUCs of one study's doses, and their positions."""
    x = np.log2(1 + np.array(DOSES, dtype=np.float64))
    pool, number = _pool(design.rows, design.group)
    own = _scores(random, number)
    seeds = []
    for _ in range(design.seeds):
        member = _deal(random, number, design.rows // design.group)
        scores = _seed_scores(random, own, number, design.seeds)
        slope = design.slope + (design.deviation * random.normal() if design.seeds > 1 else 0.0)
        dose = random.permutation(np.arange(pool) % len(DOSES))
        scores = scores + np.where(member, sqrt(2) * (design.intercept + slope * x[dose]), 0.0)
        seeds.append(Scored(scores, member, dose == np.arange(len(DOSES))[:, None]))
    return study_numbers(seeds, number).by_seed(), x


def count_lines(design: LineDesign, studies: int) -> Counted:
    """Fit a line in many studies of a design."""
    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration {tuple(design)}"))
    place = (norm.ppf(REACHED) - design.intercept) / design.slope if design.slope else np.inf
    lines = [fit_line(*draw_doses(design, random)) for _ in range(studies)]
    fitted = [line for line in lines if isinstance(line, FittedLine)]
    reach = [any(low <= place <= high for low, high in line.reach.places) for line in fitted]
    return Counted(
        float(np.mean([line.low <= design.slope <= line.high for line in fitted])),
        float(np.mean(reach)),
        float(np.mean([line.misfit_p < 0.05 for line in fitted])),
        1 - len(fitted) / studies,
    )


def draw_arms(design: ArmsDesign, random: np.random.Generator) -> list[Numbers]:
    """Return the AUC of each arm of one study."""
    number = _pool(design.rows, design.group)[1]
    own = _scores(random, number)
    spread = design.deviation / norm.pdf(0)
    arms: list[list[Scored]] = [[] for _ in design.aucs]
    for _ in range(design.seeds):
        member = _deal(random, number, design.rows // design.group)
        common = _seed_scores(random, own, number, design.seeds)
        for k, auc in enumerate(design.aucs):
            alone = _scores(random, number)
            moved = sqrt(2) * (
                norm.ppf(auc) * sqrt(1 + spread**2)
                + (spread * random.normal() if design.seeds > 1 else 0.0)
            )
            scores = sqrt(design.together) * common + sqrt(1 - design.together) * alone
            arms[k].append(Scored(scores + np.where(member, moved, 0.0), member, member[None]))
    return [study_numbers(arm, number) for arm in arms]


def count_contrasts(design: ArmsDesign, studies: int) -> tuple[float, float]:
    """Return the rates at which a band covers all differences to the first arm, and each one."""
    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration {tuple(design)}"))
    truth = [auc - design.aucs[0] for auc in design.aucs[1:]]
    family, each = [], []
    for _ in range(studies):
        arms = draw_arms(design, random)
        rows = contrasts([(arm, arms[0]) for arm in arms[1:]])
        pairs = [*zip(rows, truth, strict=True)]
        family.append(all(row["low"] <= true <= row["high"] for row, true in pairs))
        each += [row["pointwise_low"] <= true <= row["pointwise_high"] for row, true in pairs]
    return float(np.mean(family)), float(np.mean(each))


def count_best(design: ArmsDesign, studies: int) -> tuple[float, float]:
    """Return the rate at which the set includes the first arm, the best, and the set's size."""
    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration best {tuple(design)}"))
    sets = [best_set(draw_arms(design, random), confidence=0.95) for _ in range(studies)]
    inside = [chosen for chosen in sets if chosen is not None]
    return float(np.mean([chosen[0] for chosen in inside])), float(
        np.mean([sum(o) for o in inside])
    )


def count_seen(design: ArmsDesign, studies: int) -> tuple[float, float]:
    """Return the rate at which an AUC differs from 0.5, and the second arm from the first."""
    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration power {tuple(design)}"))
    alone, apart = [], []
    for _ in range(studies):
        arms = draw_arms(design, random)
        covariance = arms[0].by_seed().covariance(np.ones((1, 1)))
        auc, error = float(covariance.value[0]), float(covariance.error[0])
        limit = float(t.ppf(0.975, covariance.freedom[0]))
        alone.append(abs(np.log(auc / (1 - auc))) * auc * (1 - auc) > limit * error)
        row = contrasts([(arms[1], arms[0])])[0]
        apart.append(row["pointwise_low"] > 0 or row["pointwise_high"] < 0)
    return float(np.mean(alone)), float(np.mean(apart))


def expected_power(design: ArmsDesign) -> tuple[float, float]:
    """Return the power of the same two arms by `analysis.factors.power`."""
    assumed = Assumptions(
        auc=design.aucs[0],
        seed_deviation=design.deviation,
        # Scores that share half of their variance give AUCs that share a little less.
        correlation=design.together,
        seed_correlation=0.0,
        design_effect=1 + (design.group - 1) * SHARED,
    )
    delta = design.aucs[1] - design.aucs[0]
    return (
        auc_power(design.rows, design.seeds, assumed),
        difference_power(delta, design.rows, design.seeds, assumed),
    )


def _pool(rows: int, group: int) -> tuple[int, Counts]:
    return 2 * rows, (np.arange(2 * rows) // group).astype(np.int64)


def _deal(random: np.random.Generator, number: Counts, groups: int) -> Mask:
    order = random.permutation(int(number[-1]) + 1)
    member: Mask = order[number] < groups
    return member


def _scores(random: np.random.Generator, number: Counts) -> Floats:
    scores = random.normal(size=len(number))
    groups = int(number[-1]) + 1
    if groups == len(number):
        return scores
    return sqrt(1 - SHARED) * scores + sqrt(SHARED) * random.normal(size=groups)[number]


def _seed_scores(random: np.random.Generator, own: Floats, number: Counts, seeds: int) -> Floats:
    if seeds == 1:
        return own
    return sqrt(OWN) * own + sqrt(1 - OWN) * _scores(random, number)
