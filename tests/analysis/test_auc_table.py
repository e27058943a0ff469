import numpy as np
import pyarrow as pa
import pytest

from analysis.any_scores import auc_table
from analysis.settings import AnalysisSettings
from inject.errors import InputError
from tests.analysis.oracles import auc

FAST = AnalysisSettings(replicates=200)


def scores_table(columns):
    return pa.Table.from_pylist(
        [
            {"row": row, "detector": name, "setting": "default", "score": float(value)}
            for name, values in columns.items()
            for row, value in enumerate(values)
        ]
    )


def test_labelled_rows_are_compared_and_the_unlabelled_left_out():
    random = np.random.default_rng(0)
    values = random.normal(size=60)
    labels = [1] * 25 + [0] * 25 + [None] * 10
    (row,) = auc_table(scores_table({"loss": values}), labels, settings=FAST)
    assert row.auc.value == pytest.approx(auc(values[:25], values[25:50]))
    assert row.auc.low < row.auc.value < row.auc.high
    assert (row.n_members, row.n_nonmembers, row.unscored, row.own_rows) == (25, 25, 0, False)


def test_unscored_rows_leave_both_or_set_the_detector_apart():
    random = np.random.default_rng(0)
    whole, few, many = random.normal(size=(3, 60))
    few[0], many[:20] = np.nan, np.nan
    labels = [1, 0] * 30
    loss, surp, zlib = auc_table(
        scores_table({"loss": whole, "surp": few, "zlib": many}), labels, settings=FAST
    )
    assert (loss.n_members, surp.n_members, zlib.n_members) == (29, 29, 20)
    assert (loss.own_rows, surp.own_rows, zlib.own_rows) == (False, False, True)
    assert (loss.unscored, surp.unscored, zlib.unscored) == (0, 1, 20)


def test_bad_labels_and_groups_are_refused():
    table = scores_table({"loss": [1, 2]})
    with pytest.raises(InputError, match="no label"):
        auc_table(table, [1, 2], settings=FAST)
    with pytest.raises(InputError, match="1 groups for 2 labels"):
        auc_table(table, [1, 0], ["a"], settings=FAST)
