"""Cells of what more copies do: two numbers of copies in one arm, against the same non-members.

Members with one number of copies are others than those with another, and both are compared with
one set of non-members. Truths are exact, or found among a million rows where scores are rounded.
"""

from collections.abc import Iterator
from functools import cache, partial

import numpy as np
import numpy.typing as npt
from scipy import stats

from analysis.intervals.clustered import Part
from analysis.intervals.ends import IntervalMethod
from analysis.intervals.influence import Side, auc_sample
from analysis.intervals.numbers import Numbers
from scripts.calibration.cells.cell import Cell, Drawn
from scripts.calibration.cells.core import SHAPES, group_numbers, moved, normal_rows

OWN = 0.7
"""Share of a row's noise that is the same in all seeds."""
Floats = npt.NDArray[np.float64]


@cache
def rounded_auc(auc: float, step: float) -> float:
    """Return the AUC of normal scores that are rounded to multiples of a step."""
    random = np.random.default_rng(0)
    members, others = (
        np.round((random.normal(size=1_000_000) + by) / step)
        for by in (stats.norm.ppf(auc) * np.sqrt(2), 0.0)
    )
    values, counts = np.unique(others, return_counts=True)
    at = np.searchsorted(values, members)
    below = np.concatenate([[0], np.cumsum(counts)])
    equal = np.isin(members, values)
    return float((below[at] + 0.5 * np.append(counts, 0)[at] * equal).mean() / len(others))


def two_doses(
    random: np.random.Generator,
    *,
    members: tuple[int, int],
    nonmembers: int,
    aucs: tuple[float, float],
    shape: str = "normal",
    size: int = 1,
    step: float = 0.0,
    seeds: int = 1,
) -> Drawn:
    """Draw members with many and with few copies; groups of several rows have one number.

    Args:
        random: of the study.
        members: with many copies and with few.
        nonmembers: how many.
        aucs: of either.
        shape: of the noise.
        size: rows of a group.
        step: scores are rounded to multiples of it; 0 leaves them.
        seeds: models of the same rows, which share `OWN` of a row's noise.
    """
    rows = (*members, nonmembers)
    groups = [group_numbers(random, count, size) + sum(rows) * k for k, count in enumerate(rows)]
    group_ids = np.unique(np.concatenate(groups), return_inverse=True)[1]
    correlation = 0.0 if size == 1 else 0.5
    lasting = normal_rows(random, group_ids, correlation)
    parts = [
        _sample(
            _scores(random, lasting, group_ids, correlation, seeds),
            rows,
            group_ids,
            aucs,
            shape,
            step,
        )
        for _ in range(seeds)
    ]
    numbers = Numbers([{"one": part} for part in parts], IntervalMethod.AUC)
    (estimate,) = numbers.between([(0, 1)]).estimates(confidence=0.95)
    truth = [rounded_auc(auc, step) if step else auc for auc in aucs]
    return Drawn(estimate.low, estimate.high, truth[0] - truth[1])


def _scores(
    random: np.random.Generator,
    lasting: Floats,
    groups: npt.NDArray[np.int64],
    correlation: float,
    seeds: int,
) -> Floats:
    if seeds == 1:
        return lasting
    return np.asarray(
        np.sqrt(OWN) * lasting + np.sqrt(1 - OWN) * normal_rows(random, groups, correlation)
    )


def _sample(
    noise: Floats,
    rows: tuple[int, int, int],
    groups: npt.NDArray[np.int64],
    aucs: tuple[float, float],
    shape: str,
    step: float,
) -> Part:
    """Return one model's result for both numbers of copies."""
    scores, inside = SHAPES[shape](noise), rows[0] + rows[1]
    first, second, others = np.split(scores, np.cumsum(rows)[:-1])
    seen = np.concatenate([moved(shape, first, aucs[0]), moved(shape, second, aucs[1])])
    if step:
        seen, others = np.round(seen / step), np.round(others / step)
    many = np.arange(inside) < rows[0]
    within, side = np.stack([many, ~many]), Side(seen, groups[:inside])
    count = int(groups.max()) + 1
    sample = auc_sample(side, Side(others, groups[inside:]), within, count)
    return Part(sample, within.sum(axis=1).astype(np.float64))


def copies_cells() -> Iterator[Cell]:
    """Yield cells from no effect to nearly perfect order, with ties, groups and seeds."""
    plain = [((37, 37), 210), ((20, 20), 60), ((40, 15), 100), ((100, 100), 40)]
    for members, nonmembers in plain:
        for aucs in ((0.6, 0.6), (0.99, 0.71), (0.98, 0.95)):
            yield _cell(members, nonmembers, aucs)
    yield _cell((37, 37), 210, (0.95, 0.8), shape="t2")
    yield _cell((37, 37), 210, (0.6, 0.6), step=0.5)
    yield _cell((20, 20), 60, (0.95, 0.7), step=0.5)
    yield _cell((80, 80), 200, (0.95, 0.7), size=4)
    yield _cell((37, 37), 100, (0.95, 0.7), seeds=3)
    yield _cell((37, 37), 100, (0.6, 0.6), seeds=3)


def _cell(
    members: tuple[int, int],
    nonmembers: int,
    aucs: tuple[float, float],
    *,
    shape: str = "normal",
    size: int = 1,
    step: float = 0.0,
    seeds: int = 1,
) -> Cell:
    notes = [f", groups of {size}"] if size > 1 else []
    notes += [", ties"] if step else []
    notes += [f", {seeds} seeds"] if seeds > 1 else []
    name = f"{members[0]} and {members[1]} against {nonmembers}, {shape}{''.join(notes)}"
    study = partial(
        two_doses, members=members, nonmembers=nonmembers, aucs=aucs, shape=shape, size=size,
        step=step, seeds=seeds,
    )  # fmt: skip
    return Cell("copies", f"{name}, AUC {aucs[0]} less {aucs[1]}", study)


CELLS = tuple(copies_cells())
