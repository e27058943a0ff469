"""Cells of the study's factors: contrasts of arms, lines of doses.

Scores are skewed (gamma) plus heavy-tailed (t of 5) noise, rows come in groups of unequal sizes
that are dealt to the sides again in each seed, and half of a seed's effect on one arm is shared by
the others. A shift is set by its AUC in a million drawn pairs, so the truth is known without the
normal scores that the intervals assume. With one seed the truth is this model's, with three or more
it is the mean over all seeds.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import chain
from math import inf, nan, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from analysis.factors.contrasts import contrasts
from analysis.factors.lines import FittedLine, fit_line
from analysis.intervals.numbers import Numbers
from scripts.calibration.cells.cell import Cell, Drawn
from scripts.calibration.factor_studies import Scored, study_numbers

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

DOSES = np.log2(1.0 + np.array([1, 4, 16, 64]))
OWN = 0.7
"""Share of a row's noise that is its own in all seeds."""
GROUPED = 0.4
"""Share of the noise that the rows of one group have in common."""
TOGETHER = 0.5
"""Share of the noise and of the seed's effect that the arms of one seed have in common."""
LARGEST = 6
"""Rows of the largest group: sizes are drawn evenly from 1 to it."""


class Design(NamedTuple):
    """A study of several arms or doses."""

    rows: int
    """On each side, about."""
    seeds: int = 1
    deviation: float = 0.0
    """Deviation of a seed's effect on an arm, in probits of AUC."""
    grouped: bool = False

    @property
    def name(self) -> str:
        """The cell's name."""
        groups = f"groups of 1 to {LARGEST}" if self.grouped else "rows alone"
        seeds = f"{self.seeds} seeds" if self.seeds > 1 else "1 seed"
        return f"{self.rows} rows a side, {groups}, {seeds}, deviation {self.deviation:g}"


_REFUSED = Drawn(nan, nan, 0.0)


class Pool:
    """The rows of one study: their groups, and the noise of each seed."""

    def __init__(self, random: np.random.Generator, design: Design) -> None:
        """Draw the rows."""
        self.random, self.design = random, design
        sizes = np.ones(2 * design.rows, dtype=np.int64)
        if design.grouped:
            group_sizes = random.integers(1, LARGEST + 1, size=2 * design.rows)
            sizes = group_sizes[: np.searchsorted(np.cumsum(group_sizes), 2 * design.rows) + 1]
        self.group: Counts = np.repeat(np.arange(len(sizes)), sizes)
        self.count = len(sizes)
        self.own = self.noise()

    def noise(self) -> Floats:
        """Return noise of unit variance: skewed, heavy-tailed, alike within groups."""
        random, rows = self.random, len(self.group)

        def draw_noise(count: int) -> Floats:
            skewed = (random.gamma(4.0, size=count) - 4) / 2
            return sqrt(0.5) * skewed + sqrt(0.5) * random.standard_t(5, size=count) / sqrt(5 / 3)

        if not self.design.grouped:
            return draw_noise(rows)
        shared = draw_noise(self.count)[self.group]
        return sqrt(GROUPED) * shared + sqrt(1 - GROUPED) * draw_noise(rows)

    def seed_noise(self) -> Floats:
        """Return the rows' scores in one seed, before the noise of an arm."""
        return sqrt(OWN) * self.own + sqrt(1 - OWN) * self.noise()

    def arm_noise(self, common: Floats) -> Floats:
        """Return the noise of one arm in a seed."""
        return sqrt(TOGETHER) * common + sqrt(1 - TOGETHER) * self.noise()

    def deal(self) -> Mask:
        """Return which rows are members: whole groups at random, about half of the rows."""
        inside = np.zeros(self.count, dtype=bool)
        inside[self.random.permutation(self.count)[: self.count // 2]] = True
        return inside[self.group]

    def seed_effects(self, arms: int) -> Floats:
        """Return the effect of one seed on each arm, in probits; half of its variance is shared."""
        effects = self.random.normal(size=arms + 1) * self.design.deviation
        return sqrt(TOGETHER) * effects[0] + sqrt(1 - TOGETHER) * effects[1:]


@cache
def _gaps(grouped: bool) -> Floats:
    """Return 20,001 quantiles of the difference of the scores of two rows of different groups."""
    random = np.random.default_rng(0)
    parts = []
    for _ in range(40):
        pool = Pool(random, Design(12_500, grouped=grouped))
        scores = pool.arm_noise(pool.seed_noise())
        # Rows far apart are of different groups.
        parts.append(scores - np.roll(scores, len(scores) // 2))
    return np.quantile(np.concatenate(parts), np.linspace(0, 1, 20_001))


def shift_of(auc: Floats | float, *, grouped: bool) -> Floats:
    """Return the members' shift in scores for an AUC."""
    return -np.interp(1 - np.asarray(auc), np.linspace(0, 1, 20_001), _gaps(grouped))


def draw_arms(
    design: Design, aucs: Sequence[float], random: np.random.Generator
) -> tuple[list[Numbers], Floats]:
    """Return the AUC of each arm of one study, and the truth of each."""
    pool = Pool(random, design)
    arms: list[list[Scored]] = [[] for _ in aucs]
    middle = norm.ppf(aucs) * sqrt(1 + design.deviation**2)
    truth = np.array(aucs)
    for _ in range(design.seeds):
        member, common, moved = pool.deal(), pool.seed_noise(), pool.seed_effects(len(aucs))
        aucs_of_seed = norm.cdf(middle + moved)
        if design.seeds == 1:
            truth = aucs_of_seed
        for k, shift in enumerate(shift_of(aucs_of_seed, grouped=design.grouped)):
            scores = pool.arm_noise(common) + np.where(member, shift, 0.0)
            arms[k].append(Scored(scores, member, member[None]))
    return [study_numbers(arm, pool.group) for arm in arms], truth


def one_contrast(
    random: np.random.Generator, *, design: Design, aucs: Sequence[float], family: bool
) -> Drawn:
    """Return the last arm's difference to the first, or a family's distance from its truths.

    A band covers its family if no difference is farther from its truth than half the band.
    """
    arms, truth = draw_arms(design, aucs, random)
    rows = contrasts([(arm, arms[0]) for arm in arms[1:]])
    if any(row["reason"] for row in rows):
        return _REFUSED
    if not family:
        last = rows[-1]
        return Drawn(last["pointwise_low"], last["pointwise_high"], float(truth[-1] - truth[0]))
    off = [
        (row["value"] - true) / (row["high"] - row["value"])
        for row, true in zip(rows, truth[1:] - truth[0], strict=True)
    ]
    return Drawn(-1.0, 1.0, float(max(off, key=abs)))


def one_line(random: np.random.Generator, *, design: Design, slope: float, reach: bool) -> Drawn:
    """Return the slope of a line whose level varies by seed, or its crossing of AUC 0.75.

    The possible crossings can be two ranges: the result is whether they contain it.
    """
    pool = Pool(random, design)
    seeds, moved = [], 0.0
    for _ in range(design.seeds):
        member, noise = pool.deal(), pool.arm_noise(pool.seed_noise())
        moved = random.normal() * design.deviation
        # Groups are dealt to the doses whole.
        dose = random.permutation(np.arange(pool.count) % len(DOSES))[pool.group]
        shifts = shift_of(norm.cdf(moved + slope * DOSES), grouped=design.grouped)
        scores = noise + np.where(member, shifts[dose], 0.0)
        seeds.append(Scored(scores, member, dose == np.arange(len(DOSES))[:, None]))
    line = fit_line(study_numbers(seeds, pool.group).by_seed(), DOSES)
    if not isinstance(line, FittedLine):
        return _REFUSED
    # The mean AUC over seeds rises less: probit(mean) = probit / sqrt(1 + deviation²).
    flatter = sqrt(1 + design.deviation**2) if design.seeds > 1 else 1.0
    if not reach:
        return Drawn(line.low, line.high, slope / flatter)
    level = moved if design.seeds == 1 else 0.0
    place = (norm.ppf(0.75) * flatter - level) / slope if slope else inf
    covered = any(low <= place <= high for low, high in line.reach.places)
    return Drawn(0.0, 1.0, 0.5 if covered else 2.0)


_SEVERAL = (
    Design(60, 3, 0.0),
    Design(60, 3, 0.2),
    Design(150, 3, 0.1, grouped=True),
    Design(60, 5, 0.2),
)


def contrast_cells() -> Iterator[Cell]:
    """Yield cells of arms that share half of a seed's effect."""
    for design in (Design(60), Design(150, grouped=True), *_SEVERAL):
        for aucs in ((0.5, 0.5, 0.5, 0.5), (0.6, 0.7, 0.8, 0.9)):
            for family in (False, True) if design.rows == 60 else (False,):
                name = f"{'band of three' if family else 'one'}, AUC {aucs[0]} to {aucs[-1]}"
                study = partial(one_contrast, design=design, aucs=aucs, family=family)
                yield Cell("contrasts of arms", f"{design.name}; {name}", study)


def line_cells() -> Iterator[Cell]:
    """Yield cells of doses whose level varies by seed."""
    for design in (Design(60), Design(150, grouped=True), *_SEVERAL):
        for slope in (0.0, 0.2):
            for reach in (False, True) if slope else (False,):
                name = f"{'AUC 0.75' if reach else 'slope'}, slope {slope:g}"
                study = partial(one_line, design=design, slope=slope, reach=reach)
                yield Cell("lines of doses", f"{design.name}; {name}", study)


CELLS = tuple(chain(contrast_cells(), line_cells()))
