"""Decisions about datasets and rows: tables of numbers and explanatory sentences."""

import math

import pyarrow as pa

from analysis.arm import Cohort
from analysis.findings import question_table
from analysis.page.sections.rates import dataset_findings, flagged_parts

ARM = Cohort((("train.lr", "0.001"),), "contaminated")


def findings(*rows) -> pa.Table:
    plain = {
        "model": "contaminated", "seed": 0, "dataset": "news", "detector": "dataset_inference",
        "rows": "members", "statistic": "t", "value": -1.234, "low": math.nan, "high": math.nan,
        "p_value": 0.0001, "p_holm": 0.02, "n": 40, "note": "", "train.lr": "0.001",
    }  # fmt: skip
    return question_table("dataset_detectors", ["train.lr"], [{**plain, **row} for row in rows])


def test_findings_of_the_arm_and_controls_are_separate():
    arm, controls, *assumed = dataset_findings(
        findings(
            {},
            {"dataset": "all", "detector": "ensemble", "rows": "both", "statistic": "auc",
             "value": 0.6, "low": 0.5, "high": 0.7, "p_value": math.nan},
            {"detector": "prism", "value": math.nan, "note": "n too small"},
            {"train.lr": "0.2", "value": 9.0},
            {"train.lr": "", "model": "base", "value": 0.5},
        ),
        ARM,
    )  # fmt: skip
    texts = [row[arm.heads.index("Found")] for row in arm.rows]
    assert texts == ["t = −1.23", "auc = 0.60 (0.50 to 0.70)", "t: none"]
    assert arm.rows[0][arm.heads.index("p")] == "< 0.001"
    assert arm.rows[1][1] == "all datasets, both"
    (control,) = controls.parts
    assert [row[0] for row in control.rows] == ["base"]
    names = [note.text.partition(":")[0] for note in assumed]
    assert names == ["dataset_inference", "ensemble", "prism"]
    assert all("Assumes:" in note.text for note in assumed)
    assert dataset_findings(findings(), ARM) == []


def line(detector: str, flagged: int, wrong: int, model: str = "contaminated", **changes):
    members = 0 if model in ("base", "twin") else 100
    shares = (wrong / flagged, 0.02, 0.2) if flagged else (math.nan,) * 3
    return {
        "train.lr": "0.001", "model": model, "dataset": "all", "detector": detector,
        "setting": "-", "level": 0.1, "calibration_rows": 40, "calibration_groups": 30,
        "smallest_p": 1 / 31, "n_members": members, "n_nonmembers": 200, "unscored": 0,
        "flagged": flagged, "flagged_nonmembers": wrong,
        **dict(zip(("false_share", "low", "high"), shares, strict=True)),
        "members_found": (flagged - wrong) / members if members else math.nan, "n_seeds": 1,
    } | changes  # fmt: skip


def flagged(rows, detectors):
    return flagged_parts(question_table("flagged", ["train.lr"], rows), ARM, detectors)


def test_flagged_table_lists_best_detectors_first_with_controls():
    rows = [
        line("loss", 20, 1),
        line("zlib", 0, 0),
        line("lira", 60, 6),
        line("loss", 3, 1, dataset="news"),
        line("loss", 90, 30, **{"train.lr": "0.1"}),
        line("loss", 0, 0, model="base"),
        line("zlib", 4, 4, model="base"),
        line("loss", 0, 0, model="twin"),
    ]
    table, *notes = flagged(rows, ["zlib", "loss", "lira", "absent"])
    assert table.rows == (
        ("lira (an upper bound)", "60 of 300", "6", "10 % (2 to 20)", "54 %"),
        ("loss", "20 of 300", "1", "5 % (2 to 20)", "19 %"),
    )
    assert "false-discovery rate of 10 % (learning rate 0.001)" in table.title
    text = " ".join(note.text for note in notes)
    assert "zlib, loss, lira: calibrated by 40 non-members of the tuning split in 30 groups" in text
    assert "no p-value is below 0.032" in text
    assert "Nothing is flagged by zlib:" in text
    assert "On the base model, which saw no member" in text
    assert "1 of 2 detectors flag rows: zlib (4)" in text
    assert "none of 1 detectors flags a row" in text.partition("On the clean twin")[2]


def test_sections_without_calibration_or_flags_are_short():
    assert flagged([], ["loss"]) == []
    assert "Nothing is flagged by loss" in flagged([line("loss", 0, 0)], ["loss"])[1].text


def test_calibration_is_reported_per_detector():
    """A detector with few scored rows does not affect the calibration of the others."""
    few = {"calibration_rows": 1, "calibration_groups": 1, "smallest_p": 0.5}
    rows = [line("surp", 0, 0, **few), line("loss", 0, 0), line("zlib", 4, 1)]
    text = " ".join(note.text for note in flagged(rows, ["surp", "loss", "zlib"])[1:])
    assert "surp: calibrated by 1 non-member of the tuning split in 1 group;" in text
    assert "so no p-value is below 0.500, and nothing can be flagged." in text
    assert "loss, zlib: calibrated by 40 non-members of the tuning split in 30 groups" in text
    assert "Nothing is flagged by loss: too few rows" in text
