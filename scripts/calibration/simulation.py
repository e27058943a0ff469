"""Simulated studies: rows with groups, dealt again to the sides for each seed, and a known truth.

Scores are normal. A row has a constant part (70 % of the variance) and a part that is new in each
seed; groups share half of either (an intraclass correlation of 0.5). Members are shifted by an
amount that differs between seeds: its deviation is given in AUC at an AUC of 0.5, and the shift is
set so that the mean over all seeds is the requested AUC.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from analysis.intervals.clustered import Clustered, Part, cluster
from analysis.intervals.influence import Floats, Sample, expected_variance
from inject.keyed import Stream, generator, item_key

OWN = 0.7
"""Share of a row's variance that is the same in all seeds."""
SHARED = 0.5
"""Share of the variance that rows of one group have in common."""


class Design(NamedTuple):
    """One cell of the table."""

    rows: int
    """On each side."""
    group: int
    """Rows of each group."""
    auc: float
    seeds: int = 1
    deviation: float = 0.0
    """Of the seeds' AUC, at an AUC of 0.5."""


class Studies(NamedTuple):
    """Many studies of one design."""

    found: Clustered
    """[studies]."""
    truth: Floats
    """[studies]: of this model with one seed, of any seed with more."""
    raw: tuple[Floats, ...]
    """The scores of members and of non-members of the first seed, [studies, rows] each."""
    sample: Sample
    """The first seed's."""


def simulate(design: Design, studies: int, draw: str = "") -> Studies:
    """Return studies of a design with their truths; another `draw` gives other studies."""
    random = generator(0, Stream.BOOTSTRAP, item_key(f"calibration {tuple(design)}{draw}"))
    half = design.rows // design.group
    own = _rows(random, studies, 2 * half, design.group)
    spread = design.deviation / (norm.pdf(0) / np.sqrt(2))
    shift = norm.ppf(design.auc) * np.sqrt(2 + spread**2)
    seeds, firsts = [], []
    for seed in range(design.seeds):
        order = np.argsort(random.random((studies, 2 * half)), axis=1)
        scores = np.take_along_axis(own, order[:, :, None], axis=1)
        if design.seeds > 1:
            new = _rows(random, studies, 2 * half, design.group)
            scores = np.sqrt(OWN) * scores + np.sqrt(1 - OWN) * new
        moved = shift + spread * random.normal(size=studies)
        members = scores[:, :half].reshape(studies, -1) + moved[:, None]
        nonmembers = scores[:, half:].reshape(studies, -1)
        sample = influence(members, nonmembers, design.group, order)
        seeds.append({"": Part(sample, np.ones(studies))})
        if seed == 0:
            firsts = [members, nonmembers, sample, norm.cdf(moved / np.sqrt(2))]
    truth = firsts[3] if design.seeds == 1 else np.full(studies, design.auc)
    return Studies(cluster(seeds), truth, (firsts[0], firsts[1]), firsts[2])


def influence(members: Floats, nonmembers: Floats, group: int, order: Floats) -> Sample:
    """Return `analysis.intervals.influence.auc_sample` of many studies at once, without ties.

    Args:
        members: [studies, rows]; each `group` of them in a row is one group.
        nonmembers: likewise.
        group: rows of a group.
        order: the number of each group, members' first, [studies, groups].
    """
    studies, n = members.shape
    rank = np.concatenate([members, nonmembers], axis=1).argsort(axis=1).argsort(axis=1)
    below = (rank[:, :n] - members.argsort(axis=1).argsort(axis=1)) / n
    above = 1 - (rank[:, n:] - nonmembers.argsort(axis=1).argsort(axis=1)) / n
    value = below.mean(axis=1)
    groups = n // group
    parts = np.zeros((2, studies, 2 * groups))
    for side, terms in enumerate((below, above)):
        sums = (terms - value[:, None]).reshape(studies, groups, group).sum(axis=2) / n
        sums *= np.sqrt(groups / (groups - 1))
        own_groups = order[:, side * groups : (side + 1) * groups]
        np.put_along_axis(parts[side], own_groups, sums, axis=1)
    count = np.full((2, studies), groups)
    variance = sum(terms.var(axis=1) / (terms.shape[1] - 1) for terms in (below, above))
    expected = expected_variance(value) / n
    return Sample(value, parts, count - 1.0, count, np.stack([variance, expected]))


def _rows(random: np.random.Generator, studies: int, groups: int, size: int) -> Floats:
    """Return standard normal rows, [studies, groups, size], correlated within groups."""
    rows = random.normal(size=(studies, groups, size))
    if size == 1:
        return rows
    shared = random.normal(size=(studies, groups, 1))
    return np.sqrt(1 - SHARED) * rows + np.sqrt(SHARED) * shared
