"""What a finished study says of its own variances: what `spikein plan --power --from` assumes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from analysis.arm import Cohort
from analysis.factors.comparisons import arm_pairs
from analysis.factors.joint import Aucs
from analysis.factors.power import auc_variance
from analysis.factors.study import ArmAucs, Study
from analysis.intervals.clustered import FROM_SEEDS
from analysis.intervals.ends import LEAST_GROUPS
from analysis.metrics import Floats
from analysis.tables import POOLED

VARIANCE = "variance"
DESIGN = "design_effect"
SEEDS = "seed_deviation"
SHARED = "shared"
ROWS_TOGETHER = "correlation"
SEEDS_TOGETHER = "seed_correlation"


def variance_components(
    study: Study, measured: Sequence[ArmAucs], detector: str
) -> Iterator[dict[str, Any]]:
    """Yield the estimates of one detector, all datasets pooled, members with a copy.

    Of a pair of arms, the members are those of the arm with fewer.

    Args:
        study: all arms.
        measured: the detector in each.
        detector: which.
    """

    def row(cohort: Cohort, term: str, value: float, members: int, seeds: int) -> dict[str, Any]:
        head = {**cohort.columns(), "kind": VARIANCE, "dataset": POOLED, "detector": detector}
        return {**head, "term": term, "value": value, "n_members": members, "n_seeds": seeds}

    for arm, one in zip(study.arms, measured, strict=True):
        aucs = _usable(one)
        if aucs is None:
            continue
        single, shared, seeds = _split(aucs.value[:, 0], aucs.influence[:, 0])
        expected = np.mean(
            [
                auc_variance(float(value), float(members), float(nonmembers))
                for value, members, nonmembers in zip(
                    np.clip(aucs.value[:, 0], 0.01, 0.99),
                    aucs.members[:, 0],
                    aucs.nonmembers[:, 0],
                    strict=True,
                )
            ]
        )
        count = len(aucs.value)
        terms = {DESIGN: single / float(expected)}
        if count > 1:
            terms[SHARED] = shared
        if count >= FROM_SEEDS:
            terms[SEEDS] = float(np.sqrt(seeds))
        members = int(aucs.members.sum())
        for term, value in terms.items():
            yield row(arm.cohort, term, value, members, count)
    for pair in arm_pairs(study):
        first, second = _usable(measured[pair.one]), _usable(measured[pair.other])
        if first is None or second is None or len(first.value) != len(second.value):
            continue
        members = int(min(first.members.sum(), second.members.sum()))
        for term, value in _together(first, second):
            found = row(pair.cohort, term, value, members, len(first.value))
            yield {**found, "factor": pair.axis}


def _together(one: Aucs, other: Aucs) -> Iterator[tuple[str, float]]:
    """Yield the correlation of two arms by their rows, and from three seeds on by their seeds."""
    squares = float(np.square(one.influence).sum() * np.square(other.influence).sum())
    if squares > 0:
        both = float((one.influence * other.influence).sum())
        yield ROWS_TOGETHER, float(np.clip(both / np.sqrt(squares), -1.0, 1.0))
    if len(one.value) < FROM_SEEDS:
        return
    variances = [_split(aucs.value[:, 0], aucs.influence[:, 0])[2] for aucs in (one, other)]
    apart = _split(one.value[:, 0] - other.value[:, 0], one.influence[:, 0] - other.influence[:, 0])
    if min(variances) > 0:
        product = float(np.sqrt(variances[0] * variances[1]))
        found = (sum(variances) - apart[2]) / (2 * product)
        yield SEEDS_TOGETHER, float(np.clip(found, -1.0, 1.0))


def typical(values: Iterable[float]) -> float | None:
    """Return the median; None without any."""
    found = [value for value in values if np.isfinite(value)]
    return float(np.median(found)) if found else None


def _split(value: Floats, influence: Floats) -> tuple[float, float, float]:
    """Return the variance of one seed's AUC from its rows, the part of that which all seeds share
    (0 to 1), and the variance of the seeds' true values."""
    count = len(value)
    single = float(np.square(influence).sum() / count)
    if count < 2 or single <= 0:
        return single, 0.0, 0.0
    items = float(np.square(influence.mean(axis=0)).sum())
    shared = float(np.clip((count * items - single) / (count - 1), 0.0, single))
    between = float(value.var(ddof=1))
    return single, shared / single, max(between - (single - shared), 0.0)


def _usable(measured: ArmAucs) -> Aucs | None:
    aucs = measured.every.get(POOLED)
    if aucs is None:
        return None
    there = np.isfinite(aucs.value[:, 0]) & (aucs.groups[:, 0] >= LEAST_GROUPS)
    if not there.any():
        return None
    parts: list[Any] = [part[there] for part in aucs]
    return Aucs(*parts)
