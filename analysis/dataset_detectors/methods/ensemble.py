"""`ensemble`: an AUC of all detectors together, weighed on `tune` and reported on `test`.

A logistic regression on each score's place among the tune rows of its data set, so that no scale
and no data set decides. The pooled AUC is the mean over data sets, weighted by members, with a
bootstrap over groups, as every AUC of the page. Combinations of detectors as features: 2506.10424.
"""

import math

import numpy as np

from analysis.dataset_detectors.detector import (
    POOLED,
    DatasetDetector,
    DatasetEvidence,
    Finding,
    nothing,
)
from analysis.dataset_detectors.features import fitted_probability, ranked_features
from analysis.intervals.bootstrap import (
    draw_weights,
    percentile_bounds,
    placement_values,
    widen_at_limits,
)

_STATISTIC = "auc"
_FEWEST = 5


def _find(evidence: DatasetEvidence) -> list[Finding]:
    known = evidence.seen | evidence.unseen
    fitted, tested = known & ~evidence.test, known & evidence.test
    smallest = min(
        int((side & part).sum())
        for side in (evidence.seen, evidence.unseen)
        for part in (fitted, tested)
    )
    if smallest < _FEWEST:
        return [nothing("both", _STATISTIC, f"n too small: {smallest} rows of a side", smallest)]
    features = ranked_features(evidence, fitted)
    if not features.names:
        return [nothing("both", _STATISTIC, "no detector scored enough of the tune rows")]
    values = fitted_probability(features, evidence.seen, fitted)
    rows = np.flatnonzero(tested)
    sides = ["member" if evidence.seen[row] else "nonmember" for row in rows]
    weights = draw_weights(
        [f"{evidence.datasets[row]}\0{side}" for row, side in zip(rows, sides, strict=True)],
        [str(evidence.groups[row]) for row in rows],
        replicates=evidence.replicates,
        seed=evidence.seed,
    )
    total, members, smaller = np.zeros(evidence.replicates + 1), 0, 0
    for dataset in dict.fromkeys(evidence.datasets[rows]):
        here = evidence.datasets[rows] == dataset
        inside, outside = here & evidence.seen[rows], here & evidence.unseen[rows]
        if not inside.any() or not outside.any():
            continue
        placed = placement_values(values[rows][inside], values[rows][outside], weights[outside])
        with np.errstate(invalid="ignore", divide="ignore"):
            auc = (placed.below * weights[inside]).sum(axis=0) / weights[inside].sum(axis=0)
        total += int(inside.sum()) * auc
        members += int(inside.sum())
        smaller += min(int(inside.sum()), int(outside.sum()))
    if not members:
        return [nothing("both", _STATISTIC, "no data set has both sides")]
    drawn = total / members
    bounds = widen_at_limits(
        drawn[:1],
        percentile_bounds(drawn[None], confidence=evidence.confidence),
        np.array([smaller]),
        confidence=evidence.confidence,
    )
    low, high = float(bounds.low[0]), float(bounds.high[0])
    note = "" if math.isfinite(low) else "no interval"
    return [
        Finding(
            "both",
            _STATISTIC,
            float(drawn[0]),
            low,
            high,
            n=len(rows),
            note=note or f"{len(features.names)} detectors",
        )
    ]


DETECTOR = DatasetDetector(
    name="ensemble",
    summary="AUC of a logistic regression on the ranks of all detectors' scores",
    source=f"combination of detectors, fitted on tune; {POOLED}: over all data sets",
    assumption="labels of a tune split are known: an upper bound for whoever has none",
    pooled=True,
    find=_find,
)
