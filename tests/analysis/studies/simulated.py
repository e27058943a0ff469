"""Studies with a known truth: rows of one pool, dealt to unequal sides separately for each seed.

    python -m tests.analysis.studies.simulated

prints the coverage that docs/statistics.md quotes. All arms of a seed have the same sides. Half of
a row's variance is its own under every seed and arm. A seed shifts the members of all its arms, and
each of its arms by itself. Scores are rounded, so many are tied.
"""

from collections.abc import Callable, Iterator
from math import log2
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from analysis.studies.contrasts import Effect, dose_by_seed, effect_over_seeds, probits
from analysis.studies.seed_spread import Spread, seed_spread

GRID = 0.5
"""Scores are rounded to multiples of it."""
FAMILY = np.array([[-1, 1, 0, 0], [-1, 0, 1, 0], [0.5, 0.5, -0.5, -0.5]])
"""Three contrasts of four arms."""
DOSES = np.array([1, 2, 4, 8, 16, 32])
MEMBERS = np.array([31, 26, 20, 15, 5, 5])
"""By dose, as in the levels 1×6, 2×5, 4×4, 8×3, 16, 32."""


class Study(NamedTuple):
    """AUCs and their rows' variances, [seeds, arms]."""

    auc: np.ndarray
    variance: np.ndarray


class Design(NamedTuple):
    """What is simulated."""

    shifts: tuple[float, ...]
    """Of the members of each arm, in standard deviations of scores."""
    seeds: int = 8
    members: int = 40
    nonmembers: int = 120
    shared: float = 0.05
    """Standard deviation over seeds of the shift that all arms share."""
    own: float = 0.05
    """The same of each arm's own shift."""

    @property
    def truth(self) -> np.ndarray:
        """The mean AUC of each arm over all seeds; ties count half (Sheppard's correction)."""
        variance = 2 + self.shared**2 + self.own**2 + GRID**2 / 6
        return ndtr(np.array(self.shifts) / np.sqrt(variance))

    @property
    def deviation(self) -> float:
        """The deviation over seeds of the first arm's AUC of infinitely many rows."""
        shift = np.hypot(self.shared, self.own) * np.random.default_rng(1).normal(size=100_000)
        return float(ndtr((self.shifts[0] + shift) / np.sqrt(2 + GRID**2 / 6)).std())


def draw_study(design: Design, random: np.random.Generator) -> Study:
    """Return the AUCs of one study, with DeLong's variances."""
    size = design.members + design.nonmembers
    shape = design.seeds, len(design.shifts)
    rows = random.normal(size=size)
    dealt = np.argsort(random.random((design.seeds, size)), axis=1)
    shift = (
        np.array(design.shifts)
        + design.shared * random.normal(size=(design.seeds, 1))
        + design.own * random.normal(size=shape)
    )
    scores = (rows[dealt][:, None] + random.normal(size=(*shape, size))) / np.sqrt(2)
    scores[:, :, : design.members] += shift[:, :, None]
    scores = np.round(scores / GRID)
    inside, outside = np.split(scores, [design.members], axis=2)
    gaps = inside[:, :, :, None] - outside[:, :, None]
    wins = (gaps > 0) + 0.5 * (gaps == 0)
    placed = [wins.mean(axis=axis).var(axis=2, ddof=1) for axis in (3, 2)]
    return Study(wins.mean(axis=(2, 3)), placed[0] / design.members + placed[1] / design.nonmembers)


def families(
    design: Design, studies: int, measure: Callable[[np.ndarray], np.ndarray] = lambda auc: auc
) -> Iterator[list[Effect]]:
    """Yield the effects of `FAMILY` in many studies."""
    random = np.random.default_rng(7)
    for _ in range(studies):
        values = measure(draw_study(design, random).auc) @ FAMILY.T
        yield [
            effect_over_seeds(column, confidence=0.95, family=len(FAMILY)) for column in values.T
        ]


def family_coverage(design: Design, studies: int) -> float:
    """Return the share of studies in which all intervals contain the true difference."""
    truth = FAMILY @ design.truth
    return float(np.mean([_all_hold(family, truth) for family in families(design, studies)]))


def null_probit_coverage(design: Design, studies: int) -> float:
    """Return the same for probits, of arms that are alike."""

    def measure(auc: np.ndarray) -> np.ndarray:
        return probits(auc, np.array(design.members), np.array(design.nonmembers))

    effects = families(design, studies, measure)
    return float(np.mean([_all_hold(family, np.zeros(len(FAMILY))) for family in effects]))


def share_that_moves(design: Design, studies: int) -> float:
    """Return the share of studies in which a contrast has the verdict `moves AUC`."""
    moves = ("moves AUC", "both")
    return float(
        np.mean(
            [
                any(effect.verdict(0.03) in moves for effect in family)
                for family in families(design, studies)
            ]
        )
    )


def _all_hold(family: list[Effect], truth: np.ndarray) -> bool:
    return all(
        effect.low <= true <= effect.high for effect, true in zip(family, truth, strict=True)
    )


def spreads(design: Design, studies: int) -> list[Spread]:
    """Return the deviation over seeds in many studies of one arm."""
    random = np.random.default_rng(3)
    simulated = (draw_study(design, random) for _ in range(studies))
    return [
        seed_spread(study.auc[:, 0], study.variance[:, 0], confidence=0.95) for study in simulated
    ]


def spread_coverage(design: Design, studies: int) -> float:
    """Return the share of studies whose interval contains the true deviation."""
    truth = design.deviation
    return float(np.mean([each.low <= truth <= each.high for each in spreads(design, studies)]))


def draw_doses(
    random: np.random.Generator, scale: float, power: float, seeds: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Return AUCs of members by dose against 400 non-members, with their rows' variances."""
    shift = scale * DOSES**power + 0.07 * random.normal(size=(seeds, 1))
    others = np.sort(random.normal(size=(seeds, 400)), axis=1)
    auc, variance = np.zeros((2, seeds, len(DOSES)))
    for s in range(seeds):
        for k, count in enumerate(MEMBERS):
            members = np.sort(random.normal(shift[s, k], size=count))
            placed = np.searchsorted(others[s], members) / 400
            beaten = np.searchsorted(members, others[s]) / count
            auc[s, k] = placed.mean()
            variance[s, k] = placed.var(ddof=1) / count + beaten.var(ddof=1) / 400
    return auc, variance


def dose_effects(power: float, studies: int) -> tuple[list[Effect], float]:
    """Return differences of two arms in the log2 dose at AUC 0.75, and the true one."""
    random, scales = np.random.default_rng(11), (0.33, 0.45)
    first, second = (log2(np.sqrt(2) * ndtri(0.75) / scale) / power for scale in scales)
    effects = []
    for _ in range(studies):
        doses = [dose_by_seed(*draw_doses(random, scale, power), DOSES) for scale in scales]
        assert not any(note for _, note in doses)
        effects.append(effect_over_seeds(doses[1][0] - doses[0][0], confidence=0.95))
    return effects, second - first


def dose_coverage(power: float, studies: int) -> float:
    """Return the share of studies whose interval contains the true difference of doses."""
    effects, truth = dose_effects(power, studies)
    return float(np.mean([effect.low <= truth <= effect.high for effect in effects]))


if __name__ == "__main__":
    NULL = Design((0.8, 0.8, 0.8, 0.8))
    print("three contrasts", family_coverage(Design((0.5, 0.5, 0.9, 1.3)), 2000))
    print("three contrasts, 5 seeds", family_coverage(Design((0.5, 0.5, 0.9, 1.3), seeds=5), 2000))
    print("null that moves", share_that_moves(NULL, 2000))
    print("probits", null_probit_coverage(NULL, 2000))
    for seeds in (8, 12, 20):
        for deviation in (0.03, 0.07, 0.16):
            one = Design((0.75,), seeds=seeds, members=80, shared=deviation, own=0)
            print("spread", seeds, round(one.deviation, 3), spread_coverage(one, 2000))
    for power in (0.6, 0.8):
        effects, truth = dose_effects(power, 400)
        mean = np.mean([effect.value for effect in effects])
        half = np.mean([effect.high - effect.low for effect in effects]) / 2
        print("dose", power, dose_coverage(power, 400), round(truth, 3), round(mean, 3), half)
