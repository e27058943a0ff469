import numpy as np
import pyarrow as pa
import pytest

from analysis.any_scores import auc_table
from analysis.settings import AnalysisSettings
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
    member = np.array(labels, dtype=bool) & np.isfinite(few)
    nonmember = ~np.array(labels, dtype=bool) & np.isfinite(few)
    assert loss.auc.value == pytest.approx(auc(whole[member], whole[nonmember]))
