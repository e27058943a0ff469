"""Documents: the mean over their passages, a rank AUC, and the paper's figure beside it."""

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
    found = document_table(table(values), labels, groups, FAST)
    (row,) = found.rows
    # 0.5 and 0.6 against 0.2 and 0.4, where passages alone have 0.1 below both.
    assert (row.auc.value, row.n_members, row.n_nonmembers) == (1.0, 2, 2)


def test_without_documents_of_several_rows_there_is_no_table():
    values = [0.1, 0.2]
    assert document_table(table(values), [1, 0], None, FAST) is None
    assert document_table(table(values), [1, 0], ["a", "b"], FAST) is None
    assert document_table(table(values), [1, 0], ["a", "a"], FAST) is None


def test_the_papers_figure_is_optimistic_where_the_rank_auc_is_not():
    """A known mistake: DE-COP's 'AUC' is computed on predictions at a threshold chosen on them."""
    random = np.random.Generator(np.random.Philox(key=0))
    rank, papers = [], []
    for _ in range(20):
        values = random.random(60)
        found = document_table(
            table(values.tolist()), [1] * 30 + [0] * 30, [str(row // 2) for row in range(60)], FAST
        )
        rank.append(found.rows[0].auc.value)
        papers.append(found.thresholded["de_cop", "-"].mean)
    assert np.mean(rank) == pytest.approx(0.5, abs=0.06)
    assert np.mean(papers) > 0.6
