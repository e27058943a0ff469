"""`ensemble`: an AUC of all detectors together, weighed on `tune` and reported on `test`.

A logistic regression on each score's place among the tune rows of its data set, so that no scale
and no data set decides. The pooled AUC is the mean over data sets, weighted by members, with the
interval of every AUC of the page. Combinations of detectors as features: 2506.10424.
"""

import numpy as np

from analysis.dataset_detectors.detector import (
    POOLED,
    DatasetDetector,
    DatasetEvidence,
    Finding,
    nothing,
)
from analysis.dataset_detectors.features import fitted_probability, ranked_features
from analysis.intervals.clustered import Part
from analysis.intervals.ends import Scale
from analysis.intervals.influence import Side, auc_sample, pack_groups
from analysis.intervals.numbers import Numbers

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
    number, n_groups = pack_groups([str(name) for name in evidence.groups])
    parts: dict[str, Part] = {}
    for dataset in dict.fromkeys(evidence.datasets[rows]):
        here = tested & (evidence.datasets == dataset)
        inside, outside = (np.flatnonzero(here & side) for side in (evidence.seen, evidence.unseen))
        if not len(inside) or not len(outside):
            continue
        sample = auc_sample(
            Side(values[inside], number[inside]),
            Side(values[outside], number[outside]),
            np.ones((1, len(inside)), dtype=bool),
            n_groups,
        )
        parts[dataset] = Part(sample, np.array([float(len(inside))]))
    if not parts:
        return [nothing("both", _STATISTIC, "no data set has both sides")]
    (found,) = Numbers([parts], Scale.AUC).estimates(confidence=evidence.confidence)
    note = "" if found.available else "no interval"
    return [
        Finding(
            "both",
            _STATISTIC,
            *found[:3],
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
