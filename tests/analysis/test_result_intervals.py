"""Which rows of the results have an interval, and what narrows it."""

import dataclasses

import numpy as np
import pyarrow as pa

from analysis.arm import load_arm
from analysis.tables import TREND
from detect.scores.table import read_scores, write_scores
from tests.analysis.synthetic import make_arm
from tests.analysis.test_results import FAST, metrics_of, one


def test_too_few_members_have_a_value_and_no_interval(tmp_path):
    """Eight members of which six are tested, and as many non-members as one likes."""
    arm = make_arm(tmp_path, axes={}, seed=0, effect=1.0, datasets=("news",), n=8, fixed=2)
    where = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    few = one(metrics_of([arm], FAST), metric="auc", **where)
    assert few["n_members"] == 6
    assert np.isfinite(few["value"])
    assert np.isnan([few["low"], few["high"]]).all()
    assert few["interval"] == "none: 6 members, fewer than min_members"
    allowed = FAST.model_copy(update={"min_members": 6})
    assert one(metrics_of([arm], allowed), metric="auc", **where)["interval"] != few["interval"]


def test_levels_that_are_laid_out_make_narrower_intervals_and_no_other_value(tmp_path):
    arm = make_arm(tmp_path, axes={}, seed=0, effect=2.0, datasets=("news",), n=80)
    members = [one for one in load_arm(arm).examples if one.side == "member"]
    # By group, as the plan deals them.
    copies = {one.example_id: (1, 16)[int(one.group[1:]) % 2] for one in members}
    random = np.random.default_rng(0)
    rows = read_scores(arm.scores).to_pylist()
    for row in rows:
        row["score"] = 2.0 * np.log2(1 + copies.get(row["example_id"], 0)) + random.normal(scale=3)
    write_scores(arm.scores, pa.Table.from_pylist(rows), record={})
    laid_out = dataclasses.replace(arm, copies=copies)
    where = {"dataset": "all", "detector": "loss", "selection": "default", "copies": "all"}
    drawn, fixed = (
        metrics_of([dataclasses.replace(laid_out, fixed_levels=levels)], FAST)
        for levels in (False, True)
    )
    # With two levels no more can be known of a trend: each level's mean is in it as it is.
    for metric, narrower in (("auc", 0.95), (TREND, 1.1)):
        one_stratum, strata = (one(table, metric=metric, **where) for table in (drawn, fixed))
        assert strata["value"] == one_stratum["value"]
        width = strata["high"] - strata["low"]
        assert width < narrower * (one_stratum["high"] - one_stratum["low"])
        assert strata["low"] != one_stratum["low"]
    dose = {**where, "copies": "16", "metric": "auc"}
    assert str(one(drawn, **dose)) == str(one(fixed, **dose))
