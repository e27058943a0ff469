"""Judging detectors: where they rank, and what becomes of those that cannot be judged."""

from dataclasses import replace

import pytest

import spikein
from analysis.arm import Arm, Column, cohorts, join_arm
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


def test_those_that_fail_are_named_and_the_rest_goes_on(found):
    assert len(found.judged) == len(JUDGED)
    problems = {one.given.rpartition(":")[2]: one for one in found.refused}
    assert set(problems) == set(REFUSED)
    assert problems["fails"].kind == "failed"
    assert "wrong.py:" in problems["fails"].problem
    assert "ZeroDivisionError" in problems["fails"].problem
    assert "ndarray" in problems["shape"].problem
    assert problems["nothing"].kind == "loading"
    assert "takes neither" in problems["neither"].problem


def test_what_is_too_slow_is_named_and_the_rest_goes_on(judge):
    found = judge("slow", "right", time_limit=2.0)
    assert [one.name for one in found.judged] == ["wrong.right"]
    (slow,) = found.refused
    assert slow.kind == "too slow"
    assert "1,000 would take" in slow.problem


def test_only_the_test_split_is_reported(truth):
    """Scores of the tuning rows may be anything: no number of the report changes."""
    tune = {row.text for row in truth.models[0].rows if row.split == "tune"}

    def plain(example: spikein.ExampleEvidence) -> float:
        return float(example.statistics["text"].log_probability.mean())

    def spoiled(example: spikein.ExampleEvidence) -> float:
        return 100.0 + len(example.text) if example.text in tune else plain(example)

    one, other = (
        validate_detectors([function], truth, source="here").ranking
        for function in (plain, spoiled)
    )
    assert Estimate.of(one.line("plain")) == Estimate.of(other.line("spoiled"))


def test_a_bundle_gives_what_the_run_gives(judge, truth, tmp_path):
    first, second = judge("right", "BATCH"), judge("right", "BATCH", on=bundled(truth, tmp_path))
    assert str(first.findings.to_pylist()) == str(second.findings.to_pylist())
    assert [one.notes for one in first.judged] == [one.notes for one in second.judged]


def test_what_a_bundle_was_packed_without_is_named_where_a_function_reads_it(
    judge, truth, tmp_path
):
    def lowered(example: spikein.ExampleEvidence) -> float:
        return float(example.statistics["lowercase"].log_probability.mean())

    assert not judge(lowered).refused
    found = judge(lowered, get_detector("lowercase").detector, on=bundled(truth, tmp_path))
    function, declared = (one.problem for one in found.refused)
    assert "KeyError: 'lowercase'" in function
    assert "packed without lowercase, shadows: if it reads one of these" in function
    assert "it needs view lowercase, which this ground truth does not have" in declared
    assert "`spikein bundle RUN --with lowercase`" in declared


def test_findings_are_ranks_differences_arms_and_checks(found):
    rows = found.findings.to_pylist()
    assert list(dict.fromkeys(row["kind"] for row in rows)) == [
        "rank",
        "difference",
        "arm",
        "check",
    ]
    checks = [row for row in rows if row["kind"] == "check"]
    assert len(checks) == sum(len(one.findings) for one in found.judged)
    assert all(row["severity"] and row["found"] and row["value"] is None for row in checks)


def test_the_page_escapes_every_text_and_loads_nothing(truth):
    def evil(statistics: spikein.TokenStatistics) -> float | str:
        return "<script>alert(1)</script>" if len(statistics) % 3 == 0 else float(len(statistics))

    evil.__name__ = "evil"
    detector = spikein.Detector(
        name="evil",
        summary="<b>",
        needs=(spikein.View("text"),),
        score=spikein.one_score(lambda example: evil(example.statistics["text"])),
    )
    found = validate_detectors(
        [detector, "<i>.py:x"], replace(truth, name="<u>name</u>"), source="<s>"
    )
    page = render(found)
    for tag in ("<script", "<b>", "<i>.py", "<u>", "<s>"):
        assert tag not in page.replace("<b style", ""), tag
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "<svg" in page


@pytest.mark.parametrize("by_levels", [False, True])
def test_one_number_has_one_interval_in_the_report_and_in_validate(truth, by_levels, tmp_path):
    """Known mistake: validate did not know that doses were laid out, and drew a bootstrap of its
    own for the AUC beside the lengths."""
    (model, *others) = truth.models
    # Whole groups have one dose, as levels are dealt.
    dosed = {
        row.example_id: 4 * (1 + int(row.source_id) // 2 % 2)
        for row in model.rows
        if row.side == "member"
    }
    model = replace(model, copies=dosed, fixed_levels=by_levels)
    found = validate_detectors([loss_again], replace(truth, models=(model, *others)), source="here")
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
    column = Column("loss", model.defaults["loss"])
    settings = AnalysisSettings.model_validate(dict(truth.analysis))
    (cohort,) = cohorts([arm.arm])
    work = PreparedCohort.prepare(cohort, [arm], list(arm.columns), settings)
    measured = measure_columns(work, [column])[column]
    report = next(
        row
        for row in metric_rows(work, column, "default", measured)
        if (row["dataset"], row["copies"], row["metric"]) == ("all", "all", "auc")
    )
    expected = pytest.approx((report["value"], report["low"], report["high"]), abs=1e-12)
    for name in ("loss", "loss_again"):
        line = found.ranking.line(name)
        assert (line["value"], line["low"], line["high"]) == expected
    length = finding(only_judged(found), "length")
    shown = f"AUC {report['value']:.2f} [{report['low']:.2f}, {report['high']:.2f}]"
    assert shown in length.found


def loss_again(statistics: spikein.TokenStatistics) -> float:
    return float(statistics.log_probability.mean())


def test_a_detector_without_its_needs_is_named(truth):
    bare = tuple(
        replace(one, evidence=replace(one.evidence, frequency=None)) for one in truth.models
    )
    found = validate_detectors(["dc_pdd"], replace(truth, models=bare), source="here")
    (one,) = found.refused
    assert one.kind == "needs"
    assert "token frequencies" in one.problem


def test_arms_are_chosen_on_the_stored_detectors_or_by_name(judge):
    truth = make_truth(60, arms=(1, 8))
    found = judge("right", on=truth)
    assert found.arms == ("copies fixed=1", "copies fixed=8")
    assert found.arm == "copies fixed=8"
    one = only_judged(found)
    assert [name for name, _ in one.arms] == list(found.arms)
    assert judge("right", on=truth, arm="copies fixed=1").arm == "copies fixed=1"
    with pytest.raises(InputError, match="Did you mean 'copies fixed=8'"):
        judge("right", on=truth, arm="copies fixed=88")


def test_the_template_is_ranked_before_what_is_wrong(truth, file, tmp_path):
    template = write_detector(tmp_path / "my_detector.py")
    given = [f"{template}:score", *(f"{file}:{name}" for name in ("turned", "length", "PICKY"))]
    found = validate_detectors(given, truth, source="here")
    assert not found.refused
    assert wrong_checks(found.judged[0]) == set()
    assert severity(found.judged[0], "orientation") == "passed"
    ranks = {line["detector"]: line["rank"] for line in found.ranking.lines.rows}
    assert ranks["my_detector.score"] < ranks["wrong.length"] < ranks["wrong.turned"]
    assert set(ranks.values()) == set(range(1, len(ranks) + 1))
    for line in found.ranking.lines.rows:
        assert line["own_rows"] == (line["detector"] == "picky")
