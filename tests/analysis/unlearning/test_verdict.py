"""Verdicts on models with known truth, and their sentences."""

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
    # With these seeds all intervals cover the truth; one in twenty draws does not.
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


def row_of(verdicts, method, measure="all", detector="-", versus=None):
    key = (method, measure, detector)
    if versus is None:
        versus = "retrained" if measure.endswith("_difference") else ""
    (row,) = [
        row
        for row in verdicts
        if (row["method"], row["measure"], row["detector"]) == key and row["versus"] == versus
    ]
    return row


def test_models_get_the_correct_verdict(verdicts):
    names = {
        "good": "closer to the retrained",
        "weak": "closer to the original",
        "ruin": "ruined",
        "dead": "diverged",
        "torn": "closer to the retrained",
    }
    assert {method: row_of(verdicts, method)["verdict"] for method in names} == names
    by_auc = row_of(verdicts, "weak", "auc", "loss")
    gap = by_auc["original"] - by_auc["retrained"]
    own = by_auc["unlearned"] - by_auc["retrained"]
    assert by_auc["value"] == pytest.approx(own / gap)


def test_an_over_forgotten_model_is_beyond_the_retrained(verdicts):
    assert row_of(verdicts, "mirror")["verdict"] in (
        "beyond the retrained",
        "mirror of the original",
    )
    row = row_of(verdicts, "mirror", "forget_log_probability")
    assert row["verdict"] == "mirror of the original"
    assert row["value"] == pytest.approx(-1.6 / 1.5, abs=0.1)
    assert row["low"] < -1.6 / 1.5 < row["high"]


def test_verdict_sentence_contains_the_numbers_of_the_rows(verdicts):
    text = row_of(verdicts, "good")["note"]
    assert text.startswith("good is closer to the retrained model than to the original; ")
    row = row_of(verdicts, "good", "forget_log_probability")
    assert f"log-probability {AUC.brief(row)}" in text
    assert "0 is the retrained model, 1 the original" in text
    lost = row_of(verdicts, "ruin", "retain_log_probability_difference")
    assert lost["verdict"] == "lost"
    assert (
        f"retained text {lost['value']:+.2f}".replace("-", "−") in row_of(verdicts, "ruin")["note"]
    )
    assert "diverged with seed 8" in row_of(verdicts, "torn")["note"]
    assert "no finite score" in row_of(verdicts, "dead")["note"]


def test_deficits_of_the_original_are_not_losses_by_forgetting(tmp_path):
    worn = Study(
        seeds=(0, 1, 2),
        groups=60,
        group_size=1,
        methods={"worn": 0.0, "worse": 0.0},
        utility={"original": 0.6, "worn": 0.6, "worse": 1.2},
    )
    arms = write_study(tmp_path / "arms", worn)
    verdicts = measure_unlearning(arms, MeasureSettings(permutations=99))["verdict"].to_pylist()
    measure = "general_log_probability_difference"
    for method, against_original in (("worn", "kept"), ("worse", "lost")):
        assert row_of(verdicts, method, measure, versus="retrained")["verdict"] == "lost"
        assert row_of(verdicts, method, measure, versus="original")["verdict"] == against_original
    assert row_of(verdicts, "worn")["verdict"] == "closer to the retrained"
    assert row_of(verdicts, "worse")["verdict"] == "ruined"
    own = row_of(verdicts, "worn", measure, versus="original")
    interval = f"{own['value']:+.2f} [{own['low']:+.2f}, {own['high']:+.2f}]".replace("-", "−")
    against = row_of(verdicts, "worn")["note"].split("against the original: ")[1]
    assert f"general text {interval} nats per token (kept)" in against


def test_verdict_depends_on_the_whole_interval():
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
        estimate = Estimate((low + high) / 2, low, high)
        assert position_verdict(estimate) == verdict, (low, high)


def test_a_forget_set_outside_the_test_rows_is_not_a_divergence(tmp_path):
    arms = write_study(tmp_path / "arms", Study(groups=16, group_size=1))
    examples = read_examples(arms[0].examples)
    tune = {example.example_id for example in examples if example.split == "tune"}
    # No text of the forget set is in the test split, and the retain set is empty.
    arm = ArmEvidence(**{**vars(arms[0]), "forget": arms[0].forget & tune, "retain": frozenset()})
    verdicts = measure_unlearning([arm], MeasureSettings(permutations=99))["verdict"].to_pylist()
    by_auc = row_of(verdicts, "npo", "auc", "loss")
    assert (by_auc["verdict"], by_auc["note"]) == ("cannot be told", "no value")
    retained = row_of(verdicts, "npo", "retain_log_probability_difference")
    assert retained["verdict"] == "cannot be told"
    assert row_of(verdicts, "npo")["verdict"] != "diverged"
