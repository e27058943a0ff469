"""Evaluation of detectors: their ranks, and the handling of those that cannot be evaluated."""

from dataclasses import replace

import pytest

import spikein
from analysis.arm import Arm, DetectorColumn, cohorts, join_arm
from analysis.auc_cells import PreparedCohort, measure_columns
from analysis.intervals.estimate import Estimate
from analysis.settings import AnalysisSettings
from analysis.tables import metric_rows
from analysis.validate.page import render
from analysis.validate.validation import validate_detectors
from detect.registry import get_detector
from inject.errors import InputError
from spikein.cli.commands.init import write_detector
from tests.analysis.validate.judging import (
    JUDGED,
    REFUSED,
    bundled,
    finding,
    only_judged,
    severity,
    wrong_checks,
)
from tests.detect.ground_truths import make_truth


def test_failing_detectors_are_reported_and_others_continue(validation):
    assert len(validation.judged) == len(JUDGED)
    problems = {problem.given.rpartition(":")[2]: problem for problem in validation.refused}
    assert set(problems) == set(REFUSED)
    assert problems["fails"].kind == "failed"
    assert "wrong.py:" in problems["fails"].problem
    assert "ZeroDivisionError" in problems["fails"].problem
    assert "ndarray" in problems["shape"].problem
    assert problems["nothing"].kind == "loading"
    assert "takes neither" in problems["neither"].problem


def test_slow_detectors_are_reported_and_others_continue(judge):
    validation = judge("slow", "right", time_limit=2.0)
    assert [result.name for result in validation.judged] == ["wrong.right"]
    (slow,) = validation.refused
    assert slow.kind == "too slow"
    assert "1,000 would take" in slow.problem


def test_only_the_test_split_is_reported(truth):
    """Scores of tuning rows affect no number of the report."""
    tune = {row.text for row in truth.models[0].rows if row.split == "tune"}

    def plain(example: spikein.ExampleEvidence) -> float:
        return float(example.statistics["text"].log_probability.mean())

    def spoiled(example: spikein.ExampleEvidence) -> float:
        return 100.0 + len(example.text) if example.text in tune else plain(example)

    first, second = (
        validate_detectors([function], truth, source="here").ranking
        for function in (plain, spoiled)
    )
    assert Estimate.of(first.line("plain")) == Estimate.of(second.line("spoiled"))


def test_bundle_gives_the_same_results_as_the_run(judge, truth, tmp_path):
    first, second = judge("right", "BATCH"), judge("right", "BATCH", on=bundled(truth, tmp_path))
    assert str(first.findings.to_pylist()) == str(second.findings.to_pylist())
    assert [result.notes for result in first.judged] == [result.notes for result in second.judged]


def test_evidence_missing_from_a_bundle_is_named(judge, truth, tmp_path):
    def lowered(example: spikein.ExampleEvidence) -> float:
        return float(example.statistics["lowercase"].log_probability.mean())

    assert not judge(lowered).refused
    validation = judge(lowered, get_detector("lowercase").detector, on=bundled(truth, tmp_path))
    function, declared = (refusal.problem for refusal in validation.refused)
    assert "KeyError: 'lowercase'" in function
    assert "packed without lowercase, shadows: if it reads one of these" in function
    assert "it needs view lowercase, which this ground truth does not have" in declared
    assert "`spikein bundle RUN --include lowercase`" in declared


def test_findings_are_ranks_differences_arms_and_checks(validation):
    rows = validation.findings.to_pylist()
    assert list(dict.fromkeys(row["kind"] for row in rows)) == [
        "rank",
        "difference",
        "arm",
        "check",
    ]
    checks = [row for row in rows if row["kind"] == "check"]
    assert len(checks) == sum(len(result.findings) for result in validation.judged)
    assert all(row["severity"] and row["found"] and row["value"] is None for row in checks)


def test_validation_page_escapes_all_texts_and_loads_nothing(truth):
    def evil(statistics: spikein.TokenStatistics) -> float | str:
        return "<script>alert(1)</script>" if len(statistics) % 3 == 0 else float(len(statistics))

    evil.__name__ = "evil"
    detector = spikein.Detector(
        name="evil",
        summary="<b>",
        needs=(spikein.View("text"),),
        score=spikein.one_score(lambda example: evil(example.statistics["text"])),
    )
    validation = validate_detectors(
        [detector, "<i>.py:x"], replace(truth, name="<u>name</u>"), source="<s>"
    )
    page = render(validation)
    for tag in ("<script", "<b>", "<i>.py", "<u>", "<s>"):
        assert tag not in page.replace("<b style", ""), tag
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "<svg" in page


@pytest.mark.parametrize("by_levels", [False, True])
def test_report_and_validate_give_the_same_interval(truth, by_levels, tmp_path):
    """Known mistake: validate ignored planned doses and used a separate bootstrap for the AUC
    adjusted for length."""
    (model, *others) = truth.models
    # All rows of a group have one dose, as for planned levels.
    dosed = {
        row.example_id: 4 * (1 + int(row.source_id) // 2 % 2)
        for row in model.rows
        if row.side == "member"
    }
    model = replace(model, copies=dosed, fixed_levels=by_levels)
    validation = validate_detectors(
        [loss_again], replace(truth, models=(model, *others)), source="here"
    )
    arm = join_arm(
        Arm(
            axes=model.axes,
            seed=model.seed,
            model=model.model,
            scores=tmp_path,
            examples=tmp_path,
            copies=dosed,
            defaults=model.defaults,
            fixed_levels=by_levels,
        ),
        model.rows,
        model.scores,
    )
    column = DetectorColumn("loss", model.defaults["loss"])
    settings = AnalysisSettings.model_validate(dict(truth.analysis))
    (cohort,) = cohorts([arm.arm])
    work = PreparedCohort.prepare(cohort, [arm], list(arm.columns), settings)
    measured = measure_columns(work, [column])[column]
    report = next(
        row
        for row in metric_rows(work, column, measured)
        if (row["dataset"], row["copies"], row["metric"]) == ("all", "all", "auc")
    )
    expected = pytest.approx((report["value"], report["low"], report["high"]), abs=1e-12)
    for name in ("loss", "loss_again"):
        line = validation.ranking.line(name)
        assert (line["value"], line["low"], line["high"]) == expected
    length = finding(only_judged(validation), "length")
    interval = f"AUC {report['value']:.2f} [{report['low']:.2f}, {report['high']:.2f}]"
    assert interval in length.found


def loss_again(statistics: spikein.TokenStatistics) -> float:
    return float(statistics.log_probability.mean())


def test_a_detector_without_required_evidence_is_named(truth):
    bare = tuple(
        replace(model, evidence=replace(model.evidence, frequency=None)) for model in truth.models
    )
    validation = validate_detectors(["dc_pdd"], replace(truth, models=bare), source="here")
    (refusal,) = validation.refused
    assert refusal.kind == "needs"
    assert "token frequencies" in refusal.problem


def test_arms_are_chosen_by_stored_detectors_or_by_name(judge):
    truth = make_truth(60, arms=(1, 8))
    validation = judge("right", on=truth)
    assert validation.arms == ("copies fixed=1", "copies fixed=8")
    assert validation.arm == "copies fixed=8"
    result = only_judged(validation)
    assert [name for name, _ in result.arms] == list(validation.arms)
    assert judge("right", on=truth, arm="copies fixed=1").arm == "copies fixed=1"
    with pytest.raises(InputError, match="Did you mean 'copies fixed=8'"):
        judge("right", on=truth, arm="copies fixed=88")


def test_template_ranks_before_wrong_detectors(truth, file, tmp_path):
    template = write_detector(tmp_path / "my_detector.py")
    candidates = [
        f"{template}:score",
        *(f"{file}:{name}" for name in ("turned", "length", "PICKY")),
    ]
    validation = validate_detectors(candidates, truth, source="here")
    assert not validation.refused
    assert wrong_checks(validation.judged[0]) == set()
    assert severity(validation.judged[0], "orientation") == "passed"
    ranks = {line["detector"]: line["rank"] for line in validation.ranking.lines.rows}
    assert ranks["my_detector.score"] < ranks["wrong.length"] < ranks["wrong.turned"]
    assert set(ranks.values()) == set(range(1, len(ranks) + 1))
    for line in validation.ranking.lines.rows:
        assert line["own_rows"] == (line["detector"] == "picky")
