"""Cells of the AUC: unequal sides, heavy tails, groups, seeds, and paired differences.

Scores come from distributions that the intervals do not assume; truths are exact or computed by
integration. `spikein.auc_interval` answers for one column, `analysis.comparison.metrics` (what
`spikein compare` prints) for two on the same rows.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import chain

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

import spikein
from analysis.comparison.metrics import ScoredRow, paired_differences
from scripts.calibration.cells.cell import Cell, Drawn

Floats = npt.NDArray[np.float64]
Random = np.random.Generator
Shape = Callable[[Floats], Floats]


def t2(normal: Floats) -> Floats:
    """Return normal scores with the tails of Student's t of two degrees of freedom."""
    uniform = stats.norm.cdf(normal)
    return np.asarray((2 * uniform - 1) * np.sqrt(2 / (4 * uniform * (1 - uniform))))


def exponential(normal: Floats) -> Floats:
    """Return normal scores as exponential ones."""
    return np.asarray(-np.log(stats.norm.sf(normal)))


SHAPES: dict[str, Shape] = {"normal": np.asarray, "t2": t2, "exponential": exponential}


@cache
def shift_of(shape: str, auc: float) -> float:
    """Return the shift of members (exponential: their scale) for an AUC."""
    if shape == "exponential":
        return auc / (1 - auc)
    if shape == "normal":
        return float(stats.norm.ppf(auc) * np.sqrt(2))
    grid = stats.t.ppf((np.arange(20_000) + 0.5) / 20_000, 2)
    return float(optimize.brentq(lambda by: stats.t.cdf(grid + by, 2).mean() - auc, 0, 100))


def moved(shape: str, scores: Floats, auc: float) -> Floats:
    """Return members' scores with the requested AUC."""
    by = shift_of(shape, auc)
    return scores * by if shape == "exponential" else scores + by


def group_numbers(random: Random, rows: int, size: int | tuple[int, int]) -> npt.NDArray[np.int64]:
    """Return the group of each row: all of one size, or of sizes between two."""
    if isinstance(size, int):
        return np.arange(rows) // size
    sizes = random.integers(size[0], size[1] + 1, size=rows)
    return np.repeat(np.arange(rows), sizes)[:rows]


def normal_rows(random: Random, groups: npt.NDArray[np.int64], correlation: float) -> Floats:
    """Return standard normal rows, correlated within groups."""
    shared = random.normal(size=int(groups.max()) + 1)[groups]
    own = random.normal(size=len(groups))
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own


def one_model(
    random: Random,
    *,
    members: int,
    nonmembers: int,
    auc: float,
    shape: str = "normal",
    size: int | tuple[int, int] = 1,
) -> Drawn:
    """Draw one column of one model."""
    inside, outside = (group_numbers(random, rows, size) for rows in (members, nonmembers))
    correlation = 0.0 if size == 1 else 0.5
    scores = [SHAPES[shape](normal_rows(random, side, correlation)) for side in (inside, outside)]
    labels = np.repeat([1, 0], [members, nonmembers])
    groups = None if size == 1 else np.concatenate([inside, outside + members])
    both = np.concatenate([moved(shape, scores[0], auc), scores[1]])
    interval = spikein.auc_interval(both, labels, groups)
    return Drawn(interval.low, interval.high, auc)


def several_seeds(
    random: Random,
    *,
    rows: int,
    auc: float,
    seeds: int,
    deviation: float,
    named: bool,
    dealt_anew: bool,
) -> Drawn:
    """Draw the same rows under several models, 70 % of a row's variance shared by them.

    Args:
        random: of the study.
        rows: on each side.
        auc: the mean over all seeds.
        seeds: how many.
        deviation: of the seeds' AUC, at an AUC of 0.5.
        named: whether `groups` identifies equal rows.
        dealt_anew: whether each seed deals the rows to the sides again.
    """
    spread = deviation / (stats.norm.pdf(0) / np.sqrt(2))
    shift = stats.norm.ppf(auc) * np.sqrt(2 + spread**2)
    lasting = random.normal(size=2 * rows)
    scores, labels = [], []
    for _ in range(seeds):
        label = np.repeat([1, 0], rows)
        if dealt_anew:
            label = random.permutation(label)
        by = shift + spread * random.normal()
        own = random.normal(size=2 * rows)
        scores.append(np.sqrt(0.7) * lasting + np.sqrt(0.3) * own + by * label)
        labels.append(label)
    which = np.repeat(np.arange(seeds), 2 * rows)
    groups = np.tile(np.arange(2 * rows), seeds) if named else None
    interval = spikein.auc_interval(np.concatenate(scores), np.concatenate(labels), groups, which)
    return Drawn(interval.low, interval.high, auc)


def two_detectors(
    random: Random,
    *,
    members: int,
    nonmembers: int,
    aucs: tuple[float, float],
    shape: str = "normal",
    size: int = 1,
) -> Drawn:
    """Draw two detectors on the same rows, 80 % of their noise shared."""
    inside, outside = (group_numbers(random, rows, size) for rows in (members, nonmembers))
    groups = np.concatenate([inside, outside + members])
    label = np.repeat([True, False], [members, nonmembers])
    correlation = 0.0 if size == 1 else 0.5
    shared = normal_rows(random, groups, correlation)
    tables = []
    for auc in aucs:
        noise = np.sqrt(0.8) * shared + np.sqrt(0.2) * normal_rows(random, groups, correlation)
        scores = SHAPES[shape](noise)
        scores = np.where(label, moved(shape, scores, auc), scores)
        rows = zip(groups.tolist(), label.tolist(), scores.tolist(), strict=True)
        tables.append(
            [
                ScoredRow(0, str(at), "one", str(group), is_member, score)
                for at, (group, is_member, score) in enumerate(rows)
            ]
        )
    difference = paired_differences(tables[1], tables[0], confidence=0.95)["all"][2]
    return Drawn(difference.low, difference.high, aucs[0] - aucs[1])


def auc_cells() -> Iterator[Cell]:
    """Yield cells of one model's AUC."""
    designs = [
        (20, 400, "normal", 1, (0.9, 0.95, 0.98)),
        (400, 20, "normal", 1, (0.9, 0.98)),
        (50, 1000, "normal", 1, (0.95, 0.98)),
        (20, 20, "normal", 1, (0.65, 0.9)),
        (100, 100, "normal", 1, (0.65, 0.9, 0.98)),
        (100, 100, "t2", 1, (0.9, 0.98)),
        (20, 400, "t2", 1, (0.9,)),
        (100, 100, "exponential", 1, (0.9, 0.98)),
        (40, 40, "normal", 4, (0.65, 0.9, 0.98)),
        (100, 100, "normal", 4, (0.65, 0.98)),
        (100, 100, "normal", (1, 20), (0.65, 0.98)),
        (200, 200, "normal", (1, 20), (0.98,)),
        (400, 400, "normal", (1, 20), (0.98,)),
    ]
    for members, nonmembers, shape, size, aucs in designs:
        grouped = {1: "", 4: ", groups of 4", (1, 20): ", groups of 1 to 20"}[size]
        for auc in aucs:
            name = f"{members} against {nonmembers}, {shape}{grouped}, AUC {auc}"
            draw = partial(
                one_model, members=members, nonmembers=nonmembers, auc=auc, shape=shape, size=size
            )
            yield Cell("AUC", name, draw)


def seed_cells() -> Iterator[Cell]:
    """Yield cells of several seeds on the same rows."""
    designs = [
        (3, 0.0, False, False),
        (5, 0.0, False, False),
        (3, 0.0, True, False),
        *((seeds, deviation, True, anew) for seeds in (3, 5) for deviation in (0.03, 0.067)
          for anew in (False, True)),
    ]  # fmt: skip
    for seeds, deviation, named, anew in designs:
        name = (
            f"{seeds} seeds (deviation {deviation:g}), 100 a side, "
            f"{'dealt anew' if anew else 'same sides'}{'' if named else ', no groups'}"
        )
        draw = partial(
            several_seeds, rows=100, auc=0.7, seeds=seeds, deviation=deviation, named=named,
            dealt_anew=anew,
        )  # fmt: skip
        yield Cell("seeds", name, draw)


def difference_cells() -> Iterator[Cell]:
    """Yield cells of paired differences."""
    designs = [
        (20, 400, "normal", 1, (0.9, 0.9)),
        (20, 400, "normal", 1, (0.95, 0.9)),
        (20, 400, "normal", 1, (0.98, 0.95)),
        (20, 400, "normal", 1, (0.98, 0.98)),
        (100, 100, "normal", 1, (0.75, 0.7)),
        (100, 100, "normal", 1, (0.98, 0.95)),
        (100, 100, "t2", 1, (0.98, 0.95)),
        (40, 40, "normal", 4, (0.98, 0.95)),
    ]
    for members, nonmembers, shape, size, aucs in designs:
        grouped = "" if size == 1 else f", groups of {size}"
        name = f"{members} against {nonmembers}, {shape}{grouped}, AUC {aucs[0]} less {aucs[1]}"
        draw = partial(
            two_detectors, members=members, nonmembers=nonmembers, aucs=aucs, shape=shape, size=size
        )
        yield Cell("differences", name, draw)


CELLS = tuple(chain(auc_cells(), seed_cells(), difference_cells()))
