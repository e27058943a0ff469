"""`ensemble`: an AUC of all detectors together, weighed on `tune` and reported on `test`.

A logistic regression on each score's place among the tuning rows of its dataset, so that no scale
and no dataset decides. The pooled AUC is the mean over datasets, weighted by members, with the
interval of every AUC of the page. Combinations of detectors as features: 2506.10424.
"""

import numpy as np

from analysis.dataset_detectors.detector import (
    POOLED,
    DatasetDetector,
    DatasetEvidence,
    DatasetFinding,
    fitted_probability,
    no_result,
    ranked_features,
)
from analysis.intervals.influence import pack_groups
from analysis.intervals.rows import Rows, auc_numbers

_STATISTIC = "auc"
_FEWEST = 5


def _find(evidence: DatasetEvidence) -> list[DatasetFinding]:
    labelled = evidence.seen | evidence.unseen
    fitted, tested = labelled & ~evidence.test, labelled & evidence.test
    sides = evidence.seen, evidence.unseen
    smallest = min(int((side & part).sum()) for side in sides for part in (fitted, tested))
    if smallest < _FEWEST:
        return [no_result("both", _STATISTIC, f"n too small: {smallest} rows of a side", smallest)]
    features, names = ranked_features(evidence, fitted)
    if not names:
        return [no_result("both", _STATISTIC, "no detector scored enough of the tuning rows")]
    values = fitted_probability(features, evidence.seen, fitted)
    rows = Rows(
        seed=np.zeros(len(values)),
        dataset=evidence.datasets,
        group=pack_groups([str(name) for name in evidence.groups])[0],
        member=tested & evidence.seen,
        nonmember=tested & evidence.unseen,
    )
    numbers = auc_numbers(rows, values, least=1)
    if not any(numbers.seeds):
        return [no_result("both", _STATISTIC, "no dataset has both sides")]
    (estimate,) = numbers.estimates(confidence=evidence.confidence)
    note = f"{len(names)} detectors" if estimate.available else "no interval"
    return [DatasetFinding("both", _STATISTIC, *estimate[:3], n=int(tested.sum()), note=note)]


DETECTOR = DatasetDetector(
    name="ensemble",
    summary="AUC of a logistic regression on the ranks of all detectors' scores",
    source=f"combination of detectors, fitted on tune; {POOLED}: over all datasets",
    assumption="labels of a tuning split are known: an upper bound for auditors without labels",
    pooled=True,
    find=_find,
)
