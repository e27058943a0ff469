"""A regression of placements on all factors at once: which of them moves a text, given the others.

A member's placement is the share of non-members of its dataset, arm and seed that score below it;
its mean is the AUC. Probit regression of it (statsmodels; generalised estimating equations with an
independent working correlation, Liang and Zeger 1986), so that coefficients are in the unit of the
dose-response lines. One row of a pool is a member in several arms and seeds, and members of one
arm share their non-members: the covariance sums what each group of rows, on either side, moves a
coefficient by (the sandwich, with the non-members' part added), and adds what seeds differ by, as
an AUC's interval does. Too few groups for so many coefficients: refused.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from analysis.factors.joint import join_seeds
from analysis.factors.responses import COPIES, LENGTH, SINCE, axis_numbers, swept_axes
from analysis.factors.study import SeedRows, Study
from analysis.intervals.influence import Counts
from analysis.metrics import Floats

GROUPS_EACH = 10
"""Groups of members that each coefficient needs."""


class Coefficient(NamedTuple):
    """What one term does to the probit of a placement, all others being equal."""

    term: str
    value: float
    low: float
    high: float
    p_value: float


class Regression(NamedTuple):
    """One detector's coefficients; factors are centred, so each is that at the mean of the rest."""

    detector: str
    coefficients: tuple[Coefficient, ...]
    members: int
    """Rows, over arms and seeds."""
    groups: int
    """Groups of members."""
    seeds: int
    left_out: tuple[str, ...]
    """Factors that are not in it, each with the reason."""


class Placed(NamedTuple):
    """All members of one detector with what non-members say of them."""

    placement: Floats
    """[rows]"""
    factors: Floats
    """[rows, factors], not centred."""
    seed: Counts
    """[rows]: number of the seed."""
    group: Counts
    """[rows]"""
    blocks: tuple["Block", ...]


class Block(NamedTuple):
    """The members of one arm, seed and dataset, and their non-members."""

    rows: slice
    scores: Floats
    """Of the members."""
    others: Floats
    """Scores of the non-members."""
    other_groups: Counts


def fit_placements(
    placed: Placed, names: Sequence[str], n_groups: int, *, confidence: float
) -> tuple[list[Coefficient], int] | str:
    """Fit the regression, or say why there is none.

    Args:
        placed: the members.
        names: of the factors; the constant comes by itself, and is not returned.
        n_groups: numbers of groups lie below.
        confidence: coverage asked for.

    Returns:
        The coefficients and the seeds behind them.
    """
    import warnings

    import statsmodels.api as sm
    from scipy.stats import norm, t

    groups = len(np.unique(placed.group))
    if groups < GROUPS_EACH * (len(names) + 1):
        return (
            f"{groups} groups of members for {len(names)} coefficients; {GROUPS_EACH} are needed "
            "for each and for the constant"
        )
    x = np.column_stack([np.ones(len(placed.placement)), placed.factors])
    x[:, 1:] -= x[:, 1:].mean(axis=0)
    scale = x[:, 1:].std(axis=0)
    if np.linalg.matrix_rank(x[:, 1:] / np.where(scale > 0, scale, 1.0)) < len(names):
        return "the factors cannot be told apart"
    with warnings.catch_warnings():
        # Shares are no counts of successes, which statsmodels says of every such fit.
        warnings.simplefilter("ignore")
        family = sm.families.Binomial(link=sm.families.links.Probit())
        model = sm.GLM(placed.placement, x, family=family).fit()
    if not model.converged or not np.isfinite(model.params).all():
        return "the fit did not converge"
    linear = x @ model.params
    mean = np.clip(norm.cdf(linear), 1e-9, 1 - 1e-9)
    slope = norm.pdf(linear)
    weight = slope / (mean * (1 - mean))
    information = np.einsum("ri,rj->rij", x * (weight * slope)[:, None], x)
    bread = np.linalg.inv(information.sum(axis=0))
    pull = (x * weight[:, None]) @ bread
    of_group = np.zeros((n_groups, *bread.shape))
    np.add.at(of_group, placed.group, information)
    leverage = np.linalg.inv(np.eye(len(bread)) - bread @ of_group)
    influence = _influence(placed, pull, placed.placement - mean, leverage)
    seeds = np.unique(placed.seed)
    # A coefficient of the whole is the mean of what the seeds say, each by a step from it.
    values = model.params + len(seeds) * np.stack(
        [
            (pull * (placed.placement - mean)[:, None])[placed.seed == seed].sum(axis=0)
            for seed in seeds
        ]
    )
    coefficients = []
    for k, name in enumerate(names, start=1):
        joint = join_seeds(values[:, [k]], len(seeds) * influence[:, [k]])
        value, error, freedom = float(model.params[k]), float(joint.error[0]), joint.freedom[0]
        half = float(t.isf((1 - confidence) / 2, freedom)) * error
        p_value = float(2 * t.sf(abs(value) / error, freedom))
        coefficients.append(Coefficient(name, value, value - half, value + half, p_value))
    return coefficients, len(seeds)


def _influence(placed: Placed, pull: Floats, residual: Floats, leverage: Floats) -> Floats:
    """Return what each group moves each coefficient by, [seeds, coefficients, groups].

    Args:
        placed: the members.
        pull: of each, on each coefficient, [rows, coefficients].
        residual: of each, [rows].
        leverage: what a group's pull is multiplied by for having drawn the fit to itself,
            [groups, coefficients, coefficients].
    """
    seeds = np.unique(placed.seed)
    found = np.zeros((len(seeds), pull.shape[1], len(leverage)))
    at = np.searchsorted(seeds, placed.seed)
    moved = pull * residual[:, None]
    for k in range(pull.shape[1]):
        np.add.at(found[:, k], (at, placed.group), moved[:, k])
    found = np.einsum("gkj,sjg->skg", leverage, found)
    for block in placed.blocks:
        # A non-member lies under a share of the members: their mean pull is its own.
        order = np.argsort(block.scores)
        sums = np.concatenate(
            [np.zeros((1, pull.shape[1])), np.cumsum(pull[block.rows][order], axis=0)]
        )
        ordered = block.scores[order]
        low = np.searchsorted(ordered, block.others, side="left")
        high = np.searchsorted(ordered, block.others, side="right")
        above = sums[-1] - (sums[low] + sums[high]) / 2
        centred = (above - above.mean(axis=0)) / len(block.others)
        seed = at[block.rows.start]
        for k in range(pull.shape[1]):
            np.add.at(found[seed, k], block.other_groups, centred[:, k])
    return found


def place_members(study: Study, detector: str) -> tuple[Placed, list[str], list[str]] | str:
    """Return the members of all arms with their factors, the factors' names, and what is left out.

    Factors: log2(1 + copies); log2 of each swept number; log2 of the length; log2(1 + tokens since
    the last copy) where no learning rate changed; each data set but the first; and the product of
    the copies with each swept number.
    """
    numbers, left_out = {}, []
    for axis in swept_axes(study):
        values = axis_numbers(study, axis)
        if axis.split(".")[0] == COPIES:
            continue
        if values is None:
            left_out.append(f"{axis}: its values are no positive numbers")
        elif len(set(values)) > 1:
            numbers[axis] = np.log2(values)
    timed = all(arm.constant_rate for arm in study.arms)
    if not timed:
        left_out.append(f"{SINCE}: the learning rate changed during training")
    columns: dict[str, list[Floats]] = {}
    placement, seeds, groups, blocks = [], [], [], []
    start = 0
    for k, arm in enumerate(study.arms):
        for rows in arm.seeds:
            for dataset, inside, outside in _sides(rows, detector, timed=timed):
                scores, others = rows.scores[detector][inside], rows.scores[detector][outside]
                ordered = np.sort(others)
                below = np.searchsorted(ordered, scores, side="left")
                upto = np.searchsorted(ordered, scores, side="right")
                placement.append((below + upto) / (2 * len(others)))
                seeds.append(np.full(len(inside), rows.seed))
                groups.append(rows.group[inside])
                blocks.append(
                    Block(slice(start, start + len(inside)), scores, others, rows.group[outside])
                )
                start += len(inside)
                made = {COPIES: np.log2(1.0 + rows.copies[inside])}
                made |= {axis: np.full(len(inside), at[k]) for axis, at in numbers.items()}
                made[LENGTH] = np.log2(np.maximum(rows.length[inside], 1.0))
                if timed:
                    made[SINCE] = np.log2(1.0 + rows.since[inside])
                for number, name in enumerate(study.datasets[1:], start=1):
                    made[f"dataset {name}"] = np.full(len(inside), float(dataset == number))
                for name, values in made.items():
                    columns.setdefault(name, []).append(values)
    if not placement:
        return "no member has a placement"
    found = {name: np.concatenate(parts) for name, parts in columns.items()}
    flat = [name for name, values in found.items() if np.ptp(values) < 1e-9]
    left_out += [f"{name}: it does not vary" for name in flat if not name.startswith("dataset ")]
    found = {name: values for name, values in found.items() if name not in flat}
    for axis in numbers:
        if COPIES in found and axis in found:
            mine = found[COPIES] - found[COPIES].mean()
            found[f"{COPIES} × {axis}"] = mine * (found[axis] - found[axis].mean())
    placed = Placed(
        np.concatenate(placement),
        np.column_stack(list(found.values())) if found else np.zeros((start, 0)),
        np.concatenate(seeds),
        np.concatenate(groups),
        tuple(blocks),
    )
    return placed, list(found), left_out


def _sides(rows: SeedRows, detector: str, *, timed: bool) -> Iterator[tuple[int, Counts, Counts]]:
    """Yield the members with a copy and the non-members of each dataset."""
    held = rows.held(detector)
    usable = held & rows.member & (rows.copies > 0)
    if timed:
        usable &= np.isfinite(rows.since)
    for dataset in np.unique(rows.dataset).tolist():
        here = rows.dataset == dataset
        inside, outside = np.flatnonzero(usable & here), np.flatnonzero(held & ~rows.member & here)
        if len(inside) and len(outside):
            yield dataset, inside, outside


def regress(study: Study, detector: str, *, confidence: float) -> Regression | str:
    """Return the regression of one detector over the whole study, or why there is none."""
    found = place_members(study, detector)
    if isinstance(found, str):
        return found
    placed, names, left_out = found
    if not names:
        return "no factor varies"
    fitted = fit_placements(placed, names, study.n_groups, confidence=confidence)
    if isinstance(fitted, str):
        return fitted
    coefficients, seeds = fitted
    return Regression(
        detector=detector,
        coefficients=tuple(coefficients),
        members=len(placed.placement),
        groups=len(np.unique(placed.group)),
        seeds=seeds,
        left_out=tuple(left_out),
    )
