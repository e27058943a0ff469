"""Validation identifies each mistake of a detector and reports no others."""

from dataclasses import replace

import numpy as np
import pytest

import spikein
from analysis.arm import DetectorColumn
from analysis.settings import AnalysisSettings
from analysis.validate.checks import CheckedSetting
from analysis.validate.dependence import within_length
from analysis.validate.ranking import cohort_models
from analysis.validate.validation import validate_detectors
from detect.ground_truth.ground_truth import GroundTruth
from detect.registry import get_detector
from detect.token_statistics import TokenStatistics
from tests.analysis.oracles import auc
from tests.analysis.validate.judging import (
    bundled,
    finding,
    only_judged,
    severity,
    wrong_checks,
)
from tests.detect.ground_truths import make_model, make_truth


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("right", set()),
        ("turned", {"orientation"}),
        ("length", {"length"}),
        ("by_batch", {"batch"}),
        ("loss_again", set()),
        ("transductive", set()),
        ("position", {"order", "batch"}),
        ("counter", {"repetition"}),
        ("leak", {"chance on the base model", "chance on the clean twin"}),
        ("constant", {"ties"}),
        ("infinite", {"infinite scores"}),
        ("picky", {"missing scores"}),
    ],
)
def test_mistakes_are_identified(judged, name, wrong):
    named = wrong_checks(judged[name])
    if name == "picky":
        # Its missing rows also move it off chance on the base model.
        named &= wrong
    assert named >= wrong
    if name not in ("position", "leak", "constant", "infinite", "counter"):
        assert named == wrong


def test_findings_explain_the_mistake_and_the_remedy(judged):
    turned = finding(judged["turned"], "orientation")
    assert "members score lower" in turned.text
    assert "Return the negative" in turned.action
    length = finding(judged["length"], "length")
    assert "+1.000" in length.found
    assert "is the length of the text" in length.meaning
    loss = finding(judged["loss_again"], "loss")
    assert (loss.severity, "a variant of loss" in loss.text) == ("look", True)
    assert severity(judged["right"], "loss") == "passed"
    assert severity(judged["transductive"], "batch") == "note"
    assert severity(judged["leak"], "labels") == "note"
    assert severity(judged["coarse"], "ties") == "look"
    assert not {"order", "batch"} & {entry.check for entry in judged["counter"].findings}


def test_orientation_of_unstable_scores_is_not_judged(truth):
    """Members come first, so a falling counter ranks rows like a real detector."""
    calls = iter(range(10**6))

    def falling(statistics: TokenStatistics) -> float:
        return float(next(calls))

    result = only_judged(validate_detectors([falling], truth, source="here"))
    assert severity(result, "repetition") == "wrong"
    assert "negative" not in finding(result, "orientation").text


@pytest.mark.parametrize("count", [2, 3, 6])
def test_no_finding_on_few_rows_shows_a_nan(judge, count):
    def missing(statistics: TokenStatistics) -> float | str:
        return "odd" if len(statistics) % 2 else float(len(statistics))

    validation = judge(missing, "right", "constant", on=make_truth(count))
    assert len(validation.judged) == 3
    assert not [
        entry.text
        for judged in validation.judged
        for entry in judged.findings
        if "nan" in entry.text
    ]


def test_missing_scores_are_reported_with_shares_and_extreme_aucs(judge):
    validation = judge("PICKY")
    missing = finding(only_judged(validation), "missing scores")
    assert "0% (0 of 120) of the members" in missing.found
    assert "of 120) of the non-members have no score (not sure (" in missing.found
    low, high = (
        float(text.split(" ")[0]) for text in missing.meaning.split("it is ")[1].split(" and ")
    )
    # The detector looks good if missing non-members rank lowest and bad if they rank highest.
    assert low > 0.8
    assert low - high > 0.3
    gaps = validation.ranking.differences.where(dataset="all", copies="all").rows
    assert gaps
    assert all(gap["own_rows"] and np.isfinite(gap["low"]) for gap in gaps)


@pytest.fixture(scope="module")
def with_retrained(truth) -> GroundTruth:
    model = make_model(
        truth.models[0].rows, model="retrained", axes=dict(truth.models[0].axes), dose=8, key=40
    )
    return replace(truth, models=(*truth.models, model))


def test_forgotten_members_must_be_at_chance_on_the_retrained_model(judge, with_retrained):
    right, leak = judge("right", "LEAK", on=with_retrained).judged
    assert "chance on the retrained model" in wrong_checks(leak)
    chance = finding(right, "chance on the retrained model")
    assert chance.severity != "wrong"
    model = with_retrained.models[-1]
    score = np.array(
        [(s.log_probability - s.mean_log_prob).mean() for s in model.evidence.statistics["text"]]
    )
    test = np.array([row.split == "test" for row in model.rows])
    member = np.array([row.side == "member" for row in model.rows])
    seen = np.array([row.example_id in model.copies for row in model.rows])
    forgotten = auc(score[test & member & ~seen], score[test & ~member])
    retained = auc(score[test & seen], score[test & ~member])
    assert retained > 0.8 > 0.65 > forgotten
    assert f"AUC {forgotten:.2f} [" in chance.found.partition("did see")[0]
    assert f"did see: AUC {retained:.2f} [" in chance.found


def test_auc_within_length_matches_a_slow_count(truth):
    model = truth.models[0]
    first = cohort_models(truth)[0]
    loaded, column = first.loaded, DetectorColumn("loss", "-")
    lengths = np.array([len(ids) for ids in model.evidence.statistics["text"]], dtype=np.float64)
    settings = AnalysisSettings.model_validate(dict(truth.analysis))
    subject = CheckedSetting(first.cohort, first.models, loaded, column, settings)
    _, within, _, _ = within_length(subject, [lengths])
    arm = loaded[0]
    rows = np.flatnonzero(arm.test)
    smaller = min(arm.member[rows].sum(), (~arm.member[rows]).sum())
    count = min(5, smaller // 10)
    edges = np.quantile(lengths[rows], np.arange(1, count) / count)
    scores = arm.scores[:, arm.index[column]]
    won, pairs_of_members = 0.0, 0
    for stratum in range(count):
        inside = [
            row for row in rows if np.searchsorted(edges, lengths[row], side="left") == stratum
        ]
        members = [row for row in inside if arm.member[row]]
        others = [row for row in inside if not arm.member[row]]
        if not members or not others:
            continue
        for member in members:
            placed = [
                (scores[member] > scores[other]) + 0.5 * (scores[member] == scores[other])
                for other in others
            ]
            won += float(np.mean(placed))
            pairs_of_members += 1
    assert within.value == pytest.approx(won / pairs_of_members)
    assert within.low < within.value < within.high


def test_length_confounding_is_reported():
    """Members are longer, and the detector uses only the length plus noise."""
    truth = make_truth(100)
    model = truth.models[0]
    order = {row.example_id: at for at, row in enumerate(model.rows)}
    lengths = np.array([len(ids) for ids in model.evidence.statistics["text"]])
    by_length = np.argsort(np.argsort(lengths))
    random = np.random.Generator(np.random.Philox(key=3))
    likely = random.random(len(lengths)) < by_length / len(lengths)
    rows = tuple(
        replace(row, side="member" if likely[at] else "nonmember", group=f"g{at}")
        for at, row in enumerate(model.rows)
    )
    models = tuple(replace(model, rows=rows) for model in truth.models)
    noise = random.normal(size=len(lengths))

    def noisy_length(example: spikein.ExampleEvidence) -> float:
        from inject.examples.example import example_id

        at = order[example_id(example.text)]
        return float(lengths[at] + 6.0 * noise[at])

    validation = validate_detectors([noisy_length], replace(truth, models=models), source="here")
    result = only_judged(validation)
    assert severity(result, "length") == "look"
    assert {"chance on the base model", "chance on the clean twin"} <= wrong_checks(result)


def test_detectors_without_access_to_withheld_texts_score_the_others(judge, tmp_path):
    """Evidence that the access level forbids does not count as a withheld text."""
    truth = make_truth(40, datasets=("news", "secret"), protected="secret")
    stored = [get_detector(name).detector for name in ("loss", "min_k_plus_plus", "zlib", "dc_pdd")]
    validation = judge("right", "text_length", "ids", *stored, on=bundled(truth, tmp_path))
    assert not validation.refused
    findings = {result.name: finding(result, "missing scores") for result in validation.judged}
    missing = {name for name, entry in findings.items() if entry.severity != "passed"}
    assert missing == {"wrong.text_length", "wrong.ids", "zlib (yours)", "dc_pdd (yours)"}
    for name in missing:
        assert findings[name].severity == "note"
        assert "50% (40 of 80) of the members and 50% (40 of 80)" in findings[name].found
        assert "protected" in findings[name].found


def test_a_failure_on_one_row_is_only_a_missing_score(judge, truth):
    """The row is among the first, which are tried, timed and scored separately."""
    bad = truth.models[0].evidence.texts[1]

    def picky(example):
        if example.text == bad:
            raise ValueError("no such word")
        return float((example.statistics["text"].log_probability).mean())

    result = only_judged(judge(picky))
    assert severity(result, "missing scores") == "note"
    assert any("ValueError: no such word" in note for note in result.notes)
    assert severity(result, "batch") == "passed"
    assert not wrong_checks(result)
