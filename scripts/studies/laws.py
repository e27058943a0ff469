"""How detectable a text is by its copies, the model's size and the learning rate: a law and rivals.

    power law:      d' = a · n^γ · (N / 1e6)^ν · (η / 1e-3)^λ,    AUC = Φ(d' / √2)
    line:           d' = (a + β · log2(1 + n)) · (N / 1e6)^ν · (η / 1e-3)^λ
    power by size:  as the power law, with γ + κ · ln(N / 1e6) in place of γ

A law is fitted to the mean AUC over seeds of each arm and copy count by weighted least squares on
the probit scale, where an AUC below 0.5 is a number as any other. Weights are inverse variances
from influence values. AUCs above 0.98 are left out and counted: close to 1 the probit says how many
rows there are. (Fitting each seed separately is biased, since the probit is not linear.)

Intervals are Student's t over the delete-one-seed jackknife: the fit is repeated without each seed,
for all arms at once, as the arms of a seed share its rows and its luck; the cells and weights stay
those of all seeds.

In simulations of eight seeds whose AUCs deviate by 0.02 or 0.035 (500 studies each,
`scripts.calibration.dose_law`), the intervals of the terms cover 93 to 96 %. Cost: 0.05 s a fit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from analysis.intervals.clustered import FROM_SEEDS
from analysis.intervals.estimate import Estimate
from analysis.intervals.influence import Counts, Floats, Mask
from analysis.intervals.rows import Rows, auc_numbers
from inject.errors import InputError

LEAST_MEMBERS = 10
"""Members over all seeds below which a number of copies has no AUC."""
SATURATED = 0.98
"""Mean AUCs above this one are left out of a fit."""
_MOST = 0.998
"""The AUC that a higher mean without one seed is moved to."""
_STEEPEST = 50.0
"""Bound of the logarithm of a factor of d', against overflow on the way to the solution."""


@dataclass(frozen=True, kw_only=True)
class DoseCells:
    """AUCs of one detector by arm and number of copies, C of them under the same S seeds."""

    seeds: tuple[int, ...]
    parameters: Floats
    """Of the arm's model, [C]."""
    rate: Floats
    """Learning rate, [C]."""
    copies: Floats
    """[C]."""
    auc: Floats
    """[S, C]."""
    variance: Floats
    """Variance of the mean AUC over the seeds by which rows there are, [C]."""

    def part(self, cells: Mask) -> "DoseCells":
        """Return some of the cells."""
        columns = {name: getattr(self, name)[cells] for name in _COLUMNS}
        return replace(self, **columns, auc=self.auc[:, cells])

    @cached_property
    def usable(self) -> Mask:
        """Which cells enter a fit, [C]: those that are not saturated and whose rows differ."""
        mean = self.auc.mean(axis=0)
        return (mean <= SATURATED) & (mean >= 1 - SATURATED) & (self.variance > 0)


_COLUMNS = ("parameters", "rate", "copies", "variance")


def dose_cells(
    rows: Rows, scores: Floats, copies: Counts, *, parameters: float, rate: float
) -> DoseCells:
    """Return the AUCs of one arm by number of copies, datasets weighted by members.

    Left out are members without a copy, and numbers of copies of fewer than ten members over all
    seeds or of none in some seed.

    Args:
        rows: of the test split, under all seeds.
        scores: of each; NaN if it has none.
        copies: of each.
        parameters: of the model.
        rate: learning rate.

    Raises:
        InputError: when no number of copies has enough members.
    """
    exposed = rows.member & (copies > 0) & np.isfinite(scores)
    doses, count = np.unique(copies[exposed], return_counts=True)
    doses = doses[count >= LEAST_MEMBERS]
    if not len(doses):
        raise InputError(
            f"no number of copies has {LEAST_MEMBERS} members with a score over all seeds",
            hint="Give fewer levels to `copies`, or more members.",
        )
    within = copies == doses[:, None]
    by_seed = auc_numbers(rows, scores, within, least=1, jackknife=True).by_seed()
    mean = by_seed.influence.mean(axis=0)
    cells = DoseCells(
        seeds=tuple(dict.fromkeys(rows.seed.tolist())),
        parameters=np.full(len(doses), float(parameters)),
        rate=np.full(len(doses), float(rate)),
        copies=doses.astype(float),
        auc=by_seed.value,
        variance=np.square(mean).sum(axis=1),
    )
    return cells.part(np.asarray(np.isfinite(by_seed.value).all(axis=0)))


def join_cells(arms: Sequence[DoseCells]) -> DoseCells:
    """Return the cells of several arms as one.

    Raises:
        InputError: when their seeds differ.
    """
    if len({arm.seeds for arm in arms}) != 1:
        raise InputError(
            "the arms of a law differ in their seeds",
            allowed="the same seeds in every arm",
            hint="; ".join(dict.fromkeys(", ".join(map(str, arm.seeds)) for arm in arms)),
        )
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(arm, name) for arm in arms]) for name in _COLUMNS
    }
    return replace(arms[0], **columns, auc=np.concatenate([arm.auc for arm in arms], axis=1))


class Design(NamedTuple):
    """Arms and doses as the laws read them."""

    copies: Floats
    size: Floats
    """Natural logarithm of the parameters over a million."""
    rate: Floats
    """Natural logarithm of the learning rate over 1e-3."""

    @classmethod
    def of(cls, copies: Any, parameters: Any, rate: Any) -> "Design":
        """Return numbers of copies in one arm, or each in its own."""
        columns = np.log(np.asarray(parameters) / 1e6), np.log(np.asarray(rate) / 1e-3)
        return cls(*np.broadcast_arrays(np.asarray(copies, dtype=float), *columns))


class Law(NamedTuple):
    """A form of d'."""

    terms: tuple[str, ...]
    start: tuple[float, ...]
    """The terms that a fit starts from."""
    effect: Callable[[Floats, Design], Floats]
    """Returns d' of terms and a design."""

    def probit(self, terms: Floats, design: Design) -> Floats:
        """Return d' / √2, the probit of the AUC."""
        return np.asarray(self.effect(terms, design) / np.sqrt(2))


def _power(terms: Floats, design: Design) -> Floats:
    scale, gamma, size, rate = terms
    return scale * _exp(gamma * np.log(design.copies) + size * design.size + rate * design.rate)


def _line(terms: Floats, design: Design) -> Floats:
    start, slope, size, rate = terms
    factor = _exp(size * design.size + rate * design.rate)
    return (start + slope * np.log2(1 + design.copies)) * factor


def _power_by_size(terms: Floats, design: Design) -> Floats:
    bend = terms[4] * design.size * np.log(design.copies)
    return _power(terms[:4], design) * _exp(bend)


def _exp(exponent: Floats) -> Floats:
    return np.asarray(np.exp(np.clip(exponent, -_STEEPEST, _STEEPEST)))


LAWS: Mapping[str, Law] = {
    "power law": Law(("a", "γ", "ν", "λ"), (0.3, 0.7, 0.0, 0.0), _power),
    "line": Law(("a", "β", "ν", "λ"), (0.0, 0.3, 0.0, 0.0), _line),
    "power by size": Law(("a", "γ", "ν", "λ", "κ"), (0.3, 0.7, 0.0, 0.0, 0.0), _power_by_size),
}
"""The law of a study first, then its rivals."""


@dataclass(frozen=True, kw_only=True)
class FittedLaw:
    """A law with the terms that fit best."""

    name: str
    seeds: tuple[int, ...]
    terms: Floats
    """[P]."""
    without: Floats
    """The same fitted without each seed, [S, P]."""
    fitted: int
    """Cells of the fit."""
    left_out: int
    """Cells that are saturated, or whose rows do not differ."""
    misfit: float
    """Weighted mean square of the residuals, per degree of freedom: 1 if rows are all that the
    AUCs vary by, more with the variance between seeds, much more if the law is wrong."""

    def estimates(self, confidence: float = 0.95) -> dict[str, Estimate]:
        """Return each term with its interval."""
        half = jackknife_half(self.without, confidence)
        return {
            term: Estimate(value, value - width, value + width, seeds=len(self.seeds))
            for term, value, width in zip(
                LAWS[self.name].terms, self.terms.tolist(), half.tolist(), strict=True
            )
        }

    def probits(self, design: Design) -> tuple[Floats, Floats]:
        """Return the probits of a design's AUCs, [D], and those without each seed, [S, D]."""
        law = LAWS[self.name]
        without = [law.probit(terms, design) for terms in self.without]
        return law.probit(self.terms, design), np.stack(without)


def fit_law(cells: DoseCells, name: str = "power law") -> FittedLaw:
    """Fit a law.

    Args:
        cells: of all arms.
        name: one of `LAWS`.

    Raises:
        InputError: for fewer than three seeds, too few cells that are not saturated, or arms that
            do not distinguish size from learning rate.
    """
    from scipy.special import ndtri
    from scipy.stats import norm

    law, used = LAWS[name], cells.part(cells.usable)
    _check_design(used, law)
    design = Design.of(used.copies, used.parameters, used.rate)
    slope = norm.pdf(ndtri(used.auc.mean(axis=0)))
    root_weights = slope / np.sqrt(used.variance)

    def residuals(terms: Floats, auc: Floats) -> Floats:
        probit = ndtri(np.clip(auc, 1 - _MOST, _MOST))
        return np.asarray((law.probit(terms, design) - probit) * root_weights)

    terms = _solve(residuals, np.array(law.start), used.auc.mean(axis=0))
    without = [
        _solve(residuals, terms, np.delete(used.auc, seed, axis=0).mean(axis=0))
        for seed in range(len(cells.seeds))
    ]
    squares = np.square(residuals(terms, used.auc.mean(axis=0))).sum()
    return FittedLaw(
        name=name,
        seeds=cells.seeds,
        terms=terms,
        without=np.stack(without),
        fitted=len(used.copies),
        left_out=len(cells.copies) - len(used.copies),
        misfit=float(squares / (len(used.copies) - len(terms))),
    )


def _solve(residuals: Callable[[Floats, Floats], Floats], start: Floats, auc: Floats) -> Floats:
    from scipy.optimize import least_squares

    solution = least_squares(residuals, start, method="lm", args=(auc,), max_nfev=2_000)
    if not solution.success:
        raise InputError(
            f"the fit of a law found no solution ({solution.message})",
            hint="Do the AUCs rise with the number of copies in any arm?",
        )
    return np.asarray(solution.x)


def _check_design(used: DoseCells, law: Law) -> None:
    if len(used.seeds) < FROM_SEEDS:
        raise InputError(
            f"a law of {len(used.seeds)} seeds has no interval", allowed=f"{FROM_SEEDS} or more"
        )
    if len(used.copies) <= len(law.terms):
        raise InputError(
            f"{len(used.copies)} AUCs of arms and copy counts are between {1 - SATURATED:.2f} and "
            f"{SATURATED}, for a law of {len(law.terms)} terms",
            allowed=f"{len(law.terms) + 1} or more",
            hint="Lower copy counts or learning rates saturate less.",
        )
    size, rate = np.log(used.parameters), np.log(used.rate)
    columns = np.stack([np.ones_like(size), size - size.mean(), rate - rate.mean()], axis=1)
    if np.linalg.matrix_rank(columns, tol=1e-6) < columns.shape[1]:
        raise InputError(
            f"{len(set(used.parameters.tolist()))} model sizes and "
            f"{len(set(used.rate.tolist()))} learning rates do not distinguish ν from λ",
            allowed="two or more of both, not changed together",
        )


def jackknife_half(without: Floats, confidence: float) -> Floats:
    """Return half the width of the t interval of a delete-one-seed jackknife.

    Args:
        without: numbers without each seed, [S, …].
        confidence: requested coverage.
    """
    from scipy.stats import t

    quantile = float(t.ppf((1 + confidence) / 2, len(without) - 1))
    return np.asarray(quantile * jackknife_error(without))


def jackknife_error(without: Floats) -> Floats:
    """Return √((S − 1) / S · Σ (θ₋ₛ − mean)²)."""
    return np.asarray(np.sqrt((len(without) - 1) * without.var(axis=0)))
