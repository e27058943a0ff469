"""Held-out rows are scored as any others, by the detectors that can."""

import pytest

from detect.detector_settings import parse_detectors
from detect.evidence import Evidence, HeldOutRows
from detect.evidence.needs import HeldOut
from detect.score_file.calibration import calibrate, calibrated_by, held_out_need
from tests.detect.evidence_samples import random_statistics

HELD_OUT = [random_statistics(12, seed=number) for number in range(6)]
EVIDENCE = Evidence(
    texts=["a"],
    statistics={"text": [random_statistics(12, seed=99)]},
    held_out=HeldOutRows(datasets=[""] * 6, texts=list("abcdef"), statistics=HELD_OUT),
)


def test_detectors_of_the_text_alone_score_held_out_rows():
    settings = parse_detectors("loss,lowercase,recall,min_k:k=0.2,blind,reference")
    assert [one.name for one in calibrated_by(settings)] == ["loss", "min_k"]
    found, notes = calibrate(EVIDENCE, settings, [f"g{row // 2}" for row in range(6)])
    rows = [row for row in found.scores.to_pylist() if row["detector"] == "loss"]
    assert [row["row"] for row in rows] == list(range(6))
    assert [row["score"] for row in rows] == pytest.approx(
        [float(one.log_probability.mean(dtype="float64")) for one in HELD_OUT]
    )
    assert found.groups == ("g0", "g0", "g1", "g1", "g2", "g2")
    (note,) = notes
    assert note.endswith(": lowercase, recall, blind, reference")


def test_held_out_rows_are_asked_for_where_a_detector_can_be_calibrated():
    assert held_out_need(parse_detectors("loss")) == [HeldOut()]
    assert held_out_need(parse_detectors("lowercase,blind")) == []
    assert calibrate(EVIDENCE, parse_detectors("loss"), ["g"] * 6)[1] == ()
