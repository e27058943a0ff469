import math
from types import SimpleNamespace

from analysis.arm import Cohort
from analysis.findings import question_table
from analysis.page.tables.dataset_findings import dataset_assumptions, dataset_findings


def analysis_of(*rows):
    plain = {
        "model": "contaminated", "seed": 0, "dataset": "news", "detector": "dataset_inference",
        "rows": "members", "statistic": "t", "value": -1.234, "low": math.nan, "high": math.nan,
        "p_value": 0.0001, "p_holm": 0.02, "n": 40, "note": "",
    }  # fmt: skip
    made = [{**plain, **row} for row in rows]
    return SimpleNamespace(datasets=question_table("dataset_detectors", ["train.lr"], made))


def test_findings_of_the_arm_and_controls_stand_apart():
    analysis = analysis_of(
        {"train.lr": "0.1"},
        {"train.lr": "0.1", "dataset": "all", "detector": "ensemble", "rows": "both",
         "statistic": "auc", "value": 0.6, "low": 0.5, "high": 0.7, "p_value": math.nan},
        {"train.lr": "0.1", "detector": "prism", "value": math.nan, "note": "n too small"},
        {"train.lr": "0.2", "value": 9.0},
        {"train.lr": "", "model": "base", "value": 0.5},
    )  # fmt: skip
    arm, controls = dataset_findings(analysis, Cohort((("train.lr", "0.1"),), "contaminated"))
    found = [row[arm.columns.index("Found")] for row in arm.rows]
    assert found == ["t = −1.23", "auc = 0.60 (0.50 to 0.70)", "t: none"]
    assert arm.rows[0][arm.columns.index("p")] == "< 0.001"
    assert arm.rows[1][1] == "all data sets, both"
    assert len(controls.rows) == 1
    assert controls.rows[0][0] == "base"
    assumed = dataset_assumptions(analysis)
    assert [one.partition(":")[0] for one in assumed] == ["dataset_inference", "ensemble", "prism"]
    assert all("Assumes:" in one for one in assumed)


def test_nothing_is_shown_where_nothing_was_asked():
    empty = analysis_of()
    assert dataset_findings(empty, Cohort((), "contaminated")) == []
    assert dataset_assumptions(empty) == []
