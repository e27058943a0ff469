"""Documents have the mean of their passages and a rank AUC, unlike public code."""

import numpy as np
import pyarrow as pa
import pytest

from analysis.any_scores import document_table
from analysis.settings import AnalysisSettings

FAST = AnalysisSettings(replicates=100)


def table(values):
    return pa.table(
        {
            "row": list(range(len(values))),
            "detector": ["de_cop"] * len(values),
            "setting": ["-"] * len(values),
            "score": pa.array(values, pa.float64()),
        }
    )


def test_a_document_has_the_mean_of_its_scored_passages():
    values = [0.9, 0.1, 0.6, float("nan"), 0.2, 0.4]
    labels, groups = [1, 1, 1, 1, 0, 0], ["a", "a", "b", "b", "c", "d"]
    documents = document_table(table(values), labels, groups, FAST)
    (row,) = documents
    # 0.5 and 0.6 against 0.2 and 0.4, although one member passage has only 0.1.
    assert (row.auc.value, row.n_members, row.n_nonmembers) == (1.0, 2, 2)


def test_documents_of_one_row_give_no_table():
    values = [0.1, 0.2]
    assert document_table(table(values), [1, 0], None, FAST) is None
    assert document_table(table(values), [1, 0], ["a", "b"], FAST) is None
    assert document_table(table(values), [1, 0], ["a", "a"], FAST) is None


def thresholded(members: np.ndarray, nonmembers: np.ndarray, random: np.random.Generator) -> float:
    """Return the AUC of DE-COP's public code (Duarte et al. 2024, section 5.1): ten bootstrap
    samples, each with its best threshold. The ROC of one threshold has one corner, and its area
    is the mean of the two true rates."""
    aucs = []
    for _ in range(10):
        inside, outside = (random.choice(side, len(side)) for side in (members, nonmembers))
        cuts = np.unique(np.concatenate([inside, outside]))[:, None]
        rates = (inside[None] >= cuts).mean(axis=1) + (outside[None] < cuts).mean(axis=1)
        aucs.append(rates.max() / 2)
    return float(np.mean(aucs))


def test_rank_auc_is_unbiased_unlike_a_chosen_threshold():
    """Known mistake: DE-COP's 'AUC' uses a threshold chosen on the same predictions."""
    random = np.random.Generator(np.random.Philox(key=0))
    rank, papers = [], []
    for _ in range(20):
        values = random.random(60)
        groups = [str(row // 2) for row in range(60)]
        (row,) = document_table(table(values.tolist()), [1] * 30 + [0] * 30, groups, FAST)
        rank.append(row.auc.value)
        means = values.reshape(30, 2).mean(axis=1)
        papers.append(thresholded(means[:15], means[15:], random))
    assert np.mean(rank) == pytest.approx(0.5, abs=0.06)
    assert np.mean(papers) > 0.6
