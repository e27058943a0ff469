import math

import numpy as np
import pytest

from detect.detector_settings import parse_detectors, with_grids
from detect.evidence.frequency import Frequency
from detect.evidence.membership import Shadows, Sides
from detect.evidence.views import Reference
from detect.scores.table import (
    SCHEMA,
    default_settings,
    read_scores,
    score_notes,
    write_scores,
)
from detect.scoring import runnable, score_rows
from detect.token_statistics import EMPTY_TEXT, unscored
from inject.errors import InputError
from tests.detect.evidence_samples import (
    evidence_of,
    random_statistics,
    scores_record,
    small_frequency,
)


def test_table_has_one_row_per_example_detector_and_setting(tmp_path):
    rows = [random_statistics(9), unscored(EMPTY_TEXT), random_statistics(9)]
    evidence = evidence_of(*rows, texts=["Same", "", "Same"])
    settings = with_grids(parse_detectors("loss,min_k:k=0.33"))
    table, _ = score_rows(["a", "b", "a"], evidence, settings)
    assert table.schema == SCHEMA
    assert table.num_rows == 3 * (1 + 21)
    first_rows = table.slice(0, 3).to_pylist()
    assert [(row["row"], row["example_id"]) for row in first_rows] == [(0, "a"), (1, "b"), (2, "a")]
    assert (
        first_rows[0]["score"]
        == first_rows[2]["score"]
        == pytest.approx(float(np.mean(rows[0].log_probability)), rel=1e-6)
    )
    assert math.isnan(first_rows[1]["score"])
    assert [row["reason"] for row in first_rows] == [None, EMPTY_TEXT, None]
    record = {"policy": {"bos": "auto"}, "defaults": {"loss": ""}, "notes": ["a note"]}
    write_scores(tmp_path, table, record=record)
    assert read_scores(tmp_path).num_rows == table.num_rows
    assert scores_record(tmp_path / "scores.parquet") == record
    assert default_settings(tmp_path) == {"loss": ""}
    assert score_notes(tmp_path) == ("a note",)


def test_exactly_the_rows_without_a_score_have_a_reason():
    rows = [random_statistics(size, seed=size) for size in (1, 2, 3, 30)] + [unscored("one token")]
    evidence = evidence_of(*rows, reference=rows[::-1], frequency=small_frequency())
    names = "loss,zlib,lowercase,reference,min_k,min_k_plus_plus,surp,dc_pdd"
    table, _ = score_rows(list("abcde"), evidence, with_grids(parse_detectors(names)))
    scores = table.column("score").to_numpy()
    reasons = np.array(table.column("reason").to_pylist(), dtype=object)
    np.testing.assert_array_equal(np.isnan(scores), reasons != None)  # noqa: E711


def test_unrunnable_detectors_are_skipped_by_all_and_rejected_by_name():
    hints = {Reference(): "a", Frequency(): "Count some.", Sides(): "b", Shadows(): "Train some."}
    settings, notes = runnable(parse_detectors("all"), hints.get, leave_out=True)
    names = [setting.name for setting in settings]
    assert names == [
        item.name for item in parse_detectors("all") if not set(item.needs) & set(hints)
    ]
    assert {"loss", "zlib", "lowercase", "min_k", "min_k_plus_plus", "surp"} < set(names)
    assert "reference needs reference model" in notes[0]
    assert len(names) + len(notes) == len(parse_detectors("all"))
    with pytest.raises(InputError, match=r"dc_pdd needs token frequencies.*Count some\."):
        runnable(parse_detectors("loss,dc_pdd"), hints.get, leave_out=False)
    with pytest.raises(InputError, match=r"lira needs shadow models.*Train some\."):
        runnable(parse_detectors("loss,lira"), hints.get, leave_out=False)
    with pytest.raises(InputError, match="no detector remains"):
        runnable(parse_detectors("dc_pdd"), hints.get, leave_out=True)


def test_evidence_without_a_need_is_rejected():
    with pytest.raises(InputError, match="reference needs reference model"):
        score_rows(["a"], evidence_of(random_statistics(5)), parse_detectors("reference"))
