"""`dataset_inference`: do the scores of all detectors together set a dataset apart?

Maini et al. 2024, "LLM Dataset Inference: Did you train on my dataset?": a linear model learns
on one half (here `tune`) how to weigh all detectors' scores, and a one-sided t-test compares its
values of the suspect rows with those of held-out rows on the other half. Scores are cut at the
2.5th and 97.5th percentile, as the authors do; the scale is that of the tuning rows of both sides,
whereas their code cuts each side separately. Rows of a group are averaged first. The control
compares two halves of the non-members, as the authors' check of false positives does.
"""

import numpy as np

from analysis.dataset_detectors.detector import (
    DatasetDetector,
    DatasetEvidence,
    DatasetFinding,
    Mask,
    Rows,
    fitted_probability,
    group_means,
    no_result,
    standardised_features,
    welch_test,
)
from inject.keyed import item_key

_FEWEST = 5
_STATISTIC = "t"


def _find(evidence: DatasetEvidence) -> list[DatasetFinding]:
    keys = [f"dataset_inference\0{evidence.seed}\0{name}" for name in evidence.groups]
    halves = np.array([item_key(key) % 2 == 0 for key in keys], np.bool_)
    return [
        _test_rows(evidence, "members", evidence.seen, evidence.unseen),
        _test_rows(evidence, "non-members", evidence.unseen & halves, evidence.unseen & ~halves),
    ]


def _test_rows(
    evidence: DatasetEvidence, rows: Rows, suspect: Mask, held_out: Mask
) -> DatasetFinding:
    fitted = (suspect | held_out) & ~evidence.test
    tested = (suspect | held_out) & evidence.test
    counts = [(side & part).sum() for side in (suspect, held_out) for part in (fitted, tested)]
    smallest = int(min(counts))
    if smallest < _FEWEST:
        few = f"n too small: {smallest} rows of a side and half"
        return no_result(rows, _STATISTIC, few, smallest)
    features, names = standardised_features(evidence, fitted)
    if not names:
        return no_result(rows, _STATISTIC, "no detector scored enough of the tuning rows")
    values = fitted_probability(features, suspect, fitted)
    inside = group_means(values[tested & suspect], evidence.groups[tested & suspect])
    outside = group_means(values[tested & held_out], evidence.groups[tested & held_out])
    test = welch_test(inside, outside)
    n = len(inside) + len(outside)
    if test is None:
        return no_result(rows, _STATISTIC, "all values are equal", n)
    return DatasetFinding(
        rows, _STATISTIC, test[0], p_value=test[1], n=n, note=f"{len(names)} detectors"
    )


DETECTOR = DatasetDetector(
    name="dataset_inference",
    summary="all detectors' scores, weighed on one half, tested on the other",
    source="Maini et al. 2024",
    assumption=(
        "suspect and held-out rows were drawn at random from one source, and the "
        "held-out rows are unseen"
    ),
    find=_find,
)
