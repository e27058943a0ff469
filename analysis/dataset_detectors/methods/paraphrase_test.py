"""`paraphrase_test`: does a text score higher than the same text in other words?

The paired test on counterfactual copies (STAMP, 2504.13416; PaCoST, 2406.18326): a one-sided paired
t-test of a detector's score of each text against that of its paraphrase. Texts and paraphrases are
only alike if both were written in one way: the control, on unseen texts, shows how much
of the difference is style. Rows of a group are averaged first.
"""

import numpy as np

from analysis.dataset_detectors.detector import (
    SIDES,
    DatasetDetector,
    DatasetEvidence,
    DatasetFinding,
    Rows,
    group_means,
    mean_test,
    no_result,
)
from analysis.intervals.influence import Floats

_FEWEST = 5


def _find(evidence: DatasetEvidence) -> list[DatasetFinding]:
    if not evidence.paraphrase_scores:
        return [no_result("members", "t", "no row has a paraphrase")]
    return [
        _test_rows(evidence, rows, name, texts - paraphrases)
        for name, (texts, paraphrases) in evidence.paraphrase_scores.items()
        for rows in SIDES
    ]


def _test_rows(
    evidence: DatasetEvidence, rows: Rows, name: str, difference: Floats
) -> DatasetFinding:
    statistic = f"t of {name}"
    side = evidence.seen if rows == "members" else evidence.unseen
    used = side & evidence.test & np.isfinite(difference)
    means = group_means(difference[used], evidence.groups[used])
    if len(means) < _FEWEST:
        return no_result(rows, statistic, f"n too small: {len(means)} pairs", len(means))
    test = mean_test(means)
    if test is None:
        return no_result(rows, statistic, "all differences are equal", len(means))
    note = "" if rows == "members" else "the control"
    return DatasetFinding(rows, statistic, test[0], p_value=test[1], n=len(means), note=note)


DETECTOR = DatasetDetector(
    name="paraphrase_test",
    summary="paired t-test of a score: each text against its paraphrase",
    source="STAMP (2504.13416), PaCoST (2406.18326)",
    assumption="texts and paraphrases were written in one way, and the model saw only the texts",
    reads=("paraphrases",),
    find=_find,
)
