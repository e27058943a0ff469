"""Simulated studies of unlearning: PrivLeak, positions, means of texts, KS distance.

Each study has the rows of its seeds, half of whose groups are the forget set and half the holdout,
dealt again in each seed, under several models: half of the variance of a row's score is common to
all models and seeds, and half is separate; rows of one group share half of either. The forget set
is shifted by the amount that each model knows of it. All intervals come from the report's own
functions.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from analysis.intervals.ends import Interval, IntervalMethod
from analysis.intervals.influence import Floats
from analysis.intervals.numbers import Numbers
from analysis.intervals.rows import Rows
from analysis.settings import MeasureSettings
from analysis.unlearning.evidence import SeedCohort
from analysis.unlearning.measure_rows import privleak
from analysis.unlearning.measures import FORGET_LOG_PROBABILITY, auc_measure, forget_quality
from analysis.unlearning.verdict import find_position
from inject.keyed import Stream, generator, item_key
from scripts.calibration.coverage import Coverage, coverage
from scripts.calibration.others import groups_text, rows_of_side
from scripts.calibration.simulation import SHARED


class Design(NamedTuple):
    """Rows and models of a study."""

    rows: int
    """Of the forget set, and as many of the holdout."""
    group: int
    shifts: tuple[float, ...]
    """How far the forget set lies above the holdout under each model, in standard deviations."""
    seeds: int = 1
    deviation: float = 0.0
    """Of the shifts between seeds."""

    def text(self) -> str:
        """Return the design in words, without its shifts."""
        seeds = f", {self.seeds} seeds (deviation {self.deviation:g})" if self.seeds > 1 else ""
        return f"{self.rows} texts, {groups_text(self.group)}{seeds}"


class Case(NamedTuple):
    """One row of the table."""

    measure: str
    design: Design
    named: str
    """The truth about the models as text."""
    truth: float
    study: Callable[[np.random.Generator, Design], tuple[float, float]]
    """Draws one study: both ends of its interval, NaN if it has none."""


def case_intervals(case: Case, studies: int, draw: str = "") -> Interval:
    """Return the intervals of many studies; another `draw` has other studies."""
    name = f"calibration {case.measure} {tuple(case.design)}{draw}"
    random = generator(0, Stream.BOOTSTRAP, item_key(name))
    ends = np.array([case.study(random, case.design) for _ in range(studies)])
    return Interval(ends[:, 0], ends[:, 1], [""] * studies)


def case_coverage(case: Case, studies: int, draw: str) -> Coverage:
    """Return the coverage of a case's intervals."""
    return coverage(case_intervals(case, studies, draw), case.truth)


def p_values(design: Design, studies: int) -> tuple[Floats, Floats]:
    """Return p-values of forget quality under two models alike: ours, and the two-sample test's."""
    from scipy.stats import ks_2samp

    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration level {tuple(design)}"))
    pairs = []
    for _ in range(studies):
        (rows, values), *_ = _draw(random, design)
        first, other = (value[rows.member] for value in values)
        groups = rows.group[rows.member]
        _, own_values = forget_quality(first, other, groups, permutations=199, confidence=0.95)
        pairs.append((own_values, float(ks_2samp(first, other).pvalue)))
    own_values, plain = np.array(pairs).T
    return own_values, plain


def unlearning_cases() -> list[Case]:
    """Return all cases."""
    return [*_privleak_cases(), *_position_cases(), *_mean_cases(), *_ks_cases()]


def _privleak_cases() -> list[Case]:
    designs = [(20, 1, 1, 0.0), (100, 1, 1, 0.0), (100, 5, 1, 0.0), (100, 1, 3, 0.1)]
    pairs = [(0.5, 0.5), (0.3, 0.5), (0.7, 0.5), (0.95, 0.55), (0.6, 0.9)]
    return [
        Case(
            "PrivLeak, %",
            Design(rows, group, tuple(_shift(auc, spread) for auc in pair), seeds, spread),
            f"AUC {pair[0]} against {pair[1]}",
            100 * (pair[1] - pair[0]) / (1 - pair[1]),
            _privleak,
        )
        for rows, group, seeds, spread in designs
        for pair in pairs
    ]


def _position_cases() -> list[Case]:
    designs = [(20, 1, 1, 0.0), (100, 1, 1, 0.0), (100, 5, 1, 0.0), (100, 1, 3, 0.1)]
    cases = []
    for rows, group, seeds, spread in designs:
        for aucs in ((0.5, 0.5, 0.9), (0.7, 0.5, 0.9), (0.3, 0.5, 0.9), (0.9, 0.5, 0.9)):
            unlearned, retrained, original = aucs
            cases.append(
                Case(
                    "position by AUC",
                    Design(rows, group, tuple(_shift(auc, spread) for auc in aucs), seeds, spread),
                    f"AUC {unlearned} between {retrained} and {original}",
                    (unlearned - retrained) / (original - retrained),
                    partial(_position, by_auc=True),
                )
            )
        for shifts in ((0.0, 0.0, 1.5), (0.75, 0.0, 1.5)):
            cases.append(
                Case(
                    "position by log-probability",
                    Design(rows, group, shifts, seeds, spread),
                    f"{shifts[0]:g} between {shifts[1]:g} and {shifts[2]:g}",
                    shifts[0] / shifts[2],
                    partial(_position, by_auc=False),
                )
            )
    return cases


def _mean_cases() -> list[Case]:
    designs = [
        Design(10, 1, (0.5, 0.0)),
        Design(20, 1, (0.5, 0.0)),
        Design(100, 5, (0.5, 0.0)),
        Design(100, 1, (0.5, 0.0), 3, 0.1),
        Design(100, 5, (0.5, 0.0), 3, 0.0),
    ]
    means = [
        Case("mean log-probability, difference", design, "0.5 higher", 0.5, _mean)
        for design in designs
    ]
    return means + [
        Case(
            "exact memorisation",
            design._replace(shifts=(shift,)),
            f"{_share(shift):.2f} of the tokens",
            _share(shift),
            _memorised,
        )
        for design in designs[1:3]
        for shift in (-1.5, 0.0)
    ]


def _ks_cases() -> list[Case]:
    return [
        Case(
            "KS distance",
            Design(rows, group, (shift, 0.0)),
            f"{shift:g} apart",
            float(2 * norm.cdf(shift / 2) - 1),
            _ks,
        )
        for rows, group in ((20, 1), (100, 1), (100, 5))
        for shift in (0.0, 0.5, 2.0)
    ]


def _shift(auc: float, spread: float) -> float:
    # The mean over all seeds is the requested AUC.
    return float(norm.ppf(auc) * np.sqrt(2 + spread**2))


def _share(shift: float) -> float:
    """Return the mean share of memorised tokens of texts whose level is normal about a shift."""
    return float(norm.cdf(shift / np.sqrt(2)))


def _draw(random: np.random.Generator, design: Design) -> list[tuple[Rows, list[Floats]]]:
    """Return for each seed its rows, and their values under each model."""
    n = 2 * design.rows
    own = rows_of_side(random, n, design.group)
    seeds_drawn = []
    for seed in range(design.seeds):
        groups = random.permutation(n // design.group)
        inside = np.isin(own.groups, groups[: len(groups) // 2])
        values = [
            np.sqrt(1 - SHARED) * own.scores
            + np.sqrt(SHARED) * rows_of_side(random, n, design.group).scores
            + inside * (shift + design.deviation * random.normal())
            for shift in design.shifts
        ]
        rows = Rows.of(own.groups, seed=seed, member=inside)
        seeds_drawn.append((rows, values))
    return seeds_drawn


def _numbers(
    study: list[tuple[Rows, list[Floats]]],
    model: int,
    *,
    by_auc: bool,
    scale: IntervalMethod = IntervalMethod.SLOPE,
) -> Numbers:
    all_rows = Rows.of(
        np.concatenate([rows.group for rows, _ in study]),
        seed=np.concatenate([rows.seed for rows, _ in study]),
    )
    inside = np.concatenate([rows.member for rows, _ in study])
    masks = {"forget": inside, "detected": inside, "holdout": ~inside}
    cohort = SeedCohort(
        axes={}, seeds=(), rows=all_rows, masks=masks, copies=inside.astype(np.int64), models=[]
    )
    measure = auc_measure("loss") if by_auc else replace(FORGET_LOG_PROBABILITY, scale=scale)
    return measure.numbers(cohort, [values[model] for _, values in study])[0]


def _privleak(random: np.random.Generator, design: Design) -> tuple[float, float]:
    study = _draw(random, design)
    first, other = (_numbers(study, model, by_auc=True) for model in (0, 1))
    (leak,) = privleak(first - other, None, settings=MeasureSettings(), confidence=0.95)
    return leak.low, leak.high


def _position(random: np.random.Generator, design: Design, *, by_auc: bool) -> tuple[float, float]:
    study = _draw(random, design)
    numbers = [_numbers(study, model, by_auc=by_auc) for model in range(3)]
    position = find_position(*numbers, confidence=0.95)[0]
    return position.low, position.high


def _mean(random: np.random.Generator, design: Design) -> tuple[float, float]:
    study = _draw(random, design)
    first, other = (_numbers(study, model, by_auc=False) for model in (0, 1))
    return _ends(first - other)


def _memorised(random: np.random.Generator, design: Design) -> tuple[float, float]:
    ((rows, (levels,)),) = _draw(random, design)
    tokens = 20
    chance = norm.cdf(levels)
    shares = (random.random((tokens, len(levels))) < chance).mean(axis=0)
    return _ends(_numbers([(rows, [shares])], 0, by_auc=False, scale=IntervalMethod.TPR))


def _ends(numbers: Numbers) -> tuple[float, float]:
    (estimate,) = numbers.estimates(confidence=0.95)
    return estimate.low, estimate.high


def _ks(random: np.random.Generator, design: Design) -> tuple[float, float]:
    ((rows, (first, other)),) = _draw(random, design)
    inside = rows.member
    quality, _ = forget_quality(
        first[inside], other[inside], rows.group[inside], permutations=199, confidence=0.95
    )
    return quality.low, quality.high
