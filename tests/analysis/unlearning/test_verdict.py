"""Verdicts of models whose truth is known, and what they say in words."""

import numpy as np
import pytest

from analysis.intervals.estimate import Estimate
from analysis.settings import MeasureSettings
from analysis.unit import AUC
from analysis.unlearning.evidence import ArmEvidence
from analysis.unlearning.unlearning_step import measure_unlearning
from analysis.unlearning.verdict import position_verdict
from inject.examples.example import read_examples
from tests.analysis.unlearning.studies import Study, write_study

METHODS = {"good": 0.0, "weak": 1.45, "mirror": -1.6, "ruin": 0.0, "dead": 0.0, "torn": 0.05}
STUDY = Study(
    # A draw in which every interval holds the truth; one in twenty does not.
    seeds=(6, 7, 8),
    groups=60,
    group_size=1,
    methods=METHODS,
    utility={"ruin": 0.6},
    diverged=(("dead", 6), ("dead", 7), ("dead", 8), ("torn", 8)),
)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    arms = write_study(tmp_path_factory.mktemp("verdict") / "arms", STUDY)
    return measure_unlearning(arms, MeasureSettings(permutations=99))["verdict"].to_pylist()


def of(verdicts, method, measure="all", detector="-", versus=None):
    asked = (method, measure, detector)
    if versus is None:
        versus = "retrained" if measure.endswith("_difference") else ""
    (found,) = [
        row
        for row in verdicts
        if (row["method"], row["measure"], row["detector"]) == asked and row["versus"] == versus
    ]
    return found


def test_each_kind_of_model_is_called_what_it_is(verdicts):
    names = {
        "good": "closer to the retrained",
        "weak": "closer to the original",
        "ruin": "ruined",
        "dead": "diverged",
        "torn": "closer to the retrained",
    }
    assert {method: of(verdicts, method)["verdict"] for method in names} == names
    by_auc = of(verdicts, "weak", "auc", "loss")
    gap = by_auc["original"] - by_auc["retrained"]
    own = by_auc["unlearned"] - by_auc["retrained"]
    assert by_auc["value"] == pytest.approx(own / gap)


def test_a_model_that_knows_less_than_nothing_is_beyond_the_retrained(verdicts):
    assert of(verdicts, "mirror")["verdict"] in ("beyond the retrained", "mirror of the original")
    found = of(verdicts, "mirror", "forget_log_probability")
    assert found["verdict"] == "mirror of the original"
    assert found["value"] == pytest.approx(-1.6 / 1.5, abs=0.1)
    assert found["low"] < -1.6 / 1.5 < found["high"]


def test_the_sentence_has_the_numbers_of_the_rows(verdicts):
    text = of(verdicts, "good")["note"]
    assert text.startswith("good is closer to the retrained model than to the original; ")
    found = of(verdicts, "good", "forget_log_probability")
    assert f"log-probability {AUC.brief(found)}" in text
    assert "0 is the retrained model, 1 the original" in text
    lost = of(verdicts, "ruin", "retain_log_probability_difference")
    assert lost["verdict"] == "lost"
    assert f"retained text {lost['value']:+.2f}".replace("-", "−") in of(verdicts, "ruin")["note"]
    assert "diverged with seed 8" in of(verdicts, "torn")["note"]
    assert "no finite score" in of(verdicts, "dead")["note"]


def test_what_the_original_lacked_already_was_not_lost_by_forgetting(tmp_path):
    worn = Study(
        seeds=(0, 1, 2),
        groups=60,
        group_size=1,
        methods={"worn": 0.0, "worse": 0.0},
        utility={"original": 0.6, "worn": 0.6, "worse": 1.2},
    )
    arms = write_study(tmp_path / "arms", worn)
    found = measure_unlearning(arms, MeasureSettings(permutations=99))["verdict"].to_pylist()
    measure = "general_log_probability_difference"
    for method, against_original in (("worn", "kept"), ("worse", "lost")):
        assert of(found, method, measure, versus="retrained")["verdict"] == "lost"
        assert of(found, method, measure, versus="original")["verdict"] == against_original
    assert of(found, "worn")["verdict"] == "closer to the retrained"
    assert of(found, "worse")["verdict"] == "ruined"
    own = of(found, "worn", measure, versus="original")
    shown = f"{own['value']:+.2f} [{own['low']:+.2f}, {own['high']:+.2f}]".replace("-", "−")
    against = of(found, "worn")["note"].split("against the original: ")[1]
    assert f"general text {shown} nats per token (kept)" in against


def test_the_whole_interval_decides():
    ends = {
        (-0.2, 0.3): "closer to the retrained",
        (0.6, 1.4): "closer to the original",
        (0.2, 0.9): "cannot be told",
        (-0.4, -0.1): "beyond the retrained",
        (-0.8, -0.2): "beyond the retrained",
        (-1.3, -0.6): "mirror of the original",
        (-0.7, 0.2): "cannot be told",
        (np.nan, np.nan): "cannot be told",
    }
    for (low, high), verdict in ends.items():
        found = Estimate((low + high) / 2, low, high)
        assert position_verdict(found) == verdict, (low, high)


def test_a_forget_set_outside_of_the_test_rows_is_no_sign_that_a_model_diverged(tmp_path):
    arms = write_study(tmp_path / "arms", Study(groups=16, group_size=1))
    examples = read_examples(arms[0].examples)
    tune = {one.example_id for one in examples if one.split == "tune"}
    # Nobody of the forget set can be scored by an AUC, and nothing was retained.
    arm = ArmEvidence(**{**vars(arms[0]), "forget": arms[0].forget & tune, "retain": frozenset()})
    found = measure_unlearning([arm], MeasureSettings(permutations=99))["verdict"].to_pylist()
    by_auc = of(found, "npo", "auc", "loss")
    assert (by_auc["verdict"], by_auc["note"]) == ("cannot be told", "no value")
    retained = of(found, "npo", "retain_log_probability_difference")
    assert retained["verdict"] == "cannot be told"
    assert of(found, "npo")["verdict"] != "diverged"
