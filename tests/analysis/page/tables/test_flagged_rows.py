"""The table of flagged rows: numbers of the artifact, the rest in sentences."""

import pyarrow as pa

from analysis.arm import Cohort
from analysis.findings import question_table
from analysis.page.tables.flagged_rows import flagged_view
from analysis.results import Analysis

ARM = Cohort((("train.lr", "0.001"),), "contaminated")


def line(detector: str, flagged: int, wrong: int, model: str = "contaminated", **changes):
    members = 0 if model in ("base", "twin") else 100
    return {
        "train.lr": "0.001",
        "model": model,
        "dataset": "all",
        "detector": detector,
        "setting": "-",
        "level": 0.1,
        "calibration_rows": 40,
        "calibration_groups": 30,
        "smallest_p": 1 / 31,
        "n_members": members,
        "n_nonmembers": 200,
        "unscored": 0,
        "flagged": flagged,
        "flagged_nonmembers": wrong,
        "false_share": wrong / flagged if flagged else float("nan"),
        "low": 0.02 if flagged else float("nan"),
        "high": 0.2 if flagged else float("nan"),
        "members_found": (flagged - wrong) / members if members else float("nan"),
        "n_seeds": 1,
    } | changes


def analysis_of(rows) -> Analysis:
    empty = pa.table({})
    return Analysis(
        tables={"flagged": question_table("flagged", ["train.lr"], rows)},
        scores=empty,
        choices=(),
        unscored=(),
    )


ROWS = [
    line("loss", 20, 1),
    line("zlib", 0, 0),
    line("lira", 60, 6),
    line("loss", 3, 1, dataset="news"),
    line("loss", 90, 30, **{"train.lr": "0.1"}),
    line("loss", 0, 0, model="base"),
    line("zlib", 4, 4, model="base"),
    line("loss", 0, 0, model="twin"),
]


def test_the_best_come_first_and_who_flags_nothing_is_named():
    view = flagged_view(analysis_of(ROWS), ARM, ["zlib", "loss", "lira", "absent"])
    assert view.table.rows == (
        ("lira (an upper bound)", "60 of 300", "6", "10 % (2 to 20)", "54 %"),
        ("loss", "20 of 300", "1", "5 % (2 to 20)", "19 %"),
    )
    assert "false-discovery rate of 10 % (lr 0.001)" in view.table.title
    text = " ".join(view.sentences)
    assert "40 non-members of the tune split in 30 groups" in text
    assert "no p-value is below 0.032" in text
    assert "Nothing is flagged by zlib:" in text


def test_models_that_saw_nothing_are_the_control():
    text = " ".join(flagged_view(analysis_of(ROWS), ARM, ["loss"]).sentences)
    assert "On the base model, which saw no member" in text
    assert "1 of 2 detectors flag rows: zlib (4)" in text
    assert "On the clean twin" in text
    assert "none of 1 detectors flags a row" in text


def test_where_nothing_calibrates_or_is_flagged():
    assert flagged_view(analysis_of([]), ARM, ["loss"]) is None
    view = flagged_view(analysis_of([line("loss", 0, 0)]), ARM, ["loss"])
    assert view.table is None
    assert "Nothing is flagged by loss" in " ".join(view.sentences)
