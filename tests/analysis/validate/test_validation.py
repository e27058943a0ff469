"""Judging detectors: where they rank, and that each mistake is named."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spikein
from analysis.arm import Arm, Column, cohorts, join_arm
from analysis.auc_cells import measure_columns
from analysis.intervals.estimate import Estimate
from analysis.settings import AnalysisSettings
from analysis.tables import PreparedCohort
from analysis.validate.checks import Finding
from analysis.validate.dependence import within_length
from analysis.validate.page import render
from analysis.validate.ranking import cohort_models
from analysis.validate.validation import Judged, Validation, validate_detectors
from detect.ground_truth.bundle import read_bundle
from detect.ground_truth.ground_truth import GroundTruth
from detect.ground_truth.packing import write_bundle
from detect.registry import get_detector
from detect.token_statistics import TokenStatistics
from inject.errors import InputError
from spikein.cli.commands.init import write_detector
from tests.analysis.oracles import auc
from tests.detect.ground_truths import make_model, make_truth, store_truth
from tests.detect.wrong_detectors import SOURCE

JUDGED = (
    *("right", "turned", "length", "PICKY", "BATCH", "loss_again", "TRANSDUCTIVE", "POSITION"),
    *("counter", "LEAK", "constant", "coarse", "infinite", "either", "whole", "text_length"),
)
REFUSED = ("fails", "shape", "nothing", "neither")


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return make_truth()


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("wrong") / "wrong.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def judge(truth, file):
    def run(*names: str, on: GroundTruth | None = None, **options) -> Validation:
        given = [f"{file}:{name}" if isinstance(name, str) else name for name in names]
        return validate_detectors(given, on or truth, source="here", **options)

    return run


def bundled(truth: GroundTruth, folder: Path) -> GroundTruth:
    write_bundle(folder / "made-up.bundle", store_truth(truth, folder), folder)
    return read_bundle(folder / "made-up.bundle")


@pytest.fixture(scope="module")
def found(judge) -> Validation:
    """All wrong detectors, judged together."""
    return judge(*JUDGED, *REFUSED)


@pytest.fixture(scope="module")
def judged(found) -> dict[str, Judged]:
    return {one.name.removeprefix("wrong."): one for one in found.judged}


def finding(one: Judged, check: str) -> Finding:
    return next(finding for finding in one.findings if finding.check == check)


def severity(one: Judged, check: str) -> str:
    return finding(one, check).severity


def wrong_checks(one: Judged) -> set[str]:
    return {finding.check for finding in one.findings if finding.severity == "wrong"}


def only_judged(found: Validation) -> Judged:
    assert not found.refused, found.refused
    (one,) = found.judged
    return one


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
def test_each_mistake_is_named(judged, name, wrong):
    named = wrong_checks(judged[name])
    if name == "picky":
        # The rows that it leaves out put it off chance on the base model, too.
        named &= wrong
    assert named >= wrong
    if name not in ("position", "leak", "constant", "infinite", "counter"):
        assert named == wrong


def test_a_mistake_is_told_with_what_to_do(judged):
    turned = finding(judged["turned"], "orientation")
    assert "members score lower" in turned.text
    assert "Return the negative" in turned.action
    length = finding(judged["length"], "length")
    assert "+1.000" in length.found
    assert "is the length of the text" in length.meaning
    loss = finding(judged["loss_again"], "loss")
    assert (loss.severity, "loss in other clothes" in loss.text) == ("look", True)
    assert severity(judged["right"], "loss") == "passed"
    assert severity(judged["transductive"], "batch") == "note"
    assert severity(judged["leak"], "labels") == "note"
    assert severity(judged["coarse"], "ties") == "look"
    assert not {"order", "batch"} & {one.check for one in judged["counter"].findings}


def test_sign_of_scores_that_change_is_not_judged(truth):
    """Rows come members first, so a counter that falls ranks them as a detector would."""
    calls = iter(range(10**6))

    def falling(statistics: TokenStatistics) -> float:
        return float(next(calls))

    one = only_judged(validate_detectors([falling], truth, source="here"))
    assert severity(one, "repetition") == "wrong"
    assert "negative" not in finding(one, "orientation").text


@pytest.mark.parametrize("count", [2, 3, 6])
def test_no_finding_on_few_rows_shows_a_nan(judge, count):
    def missing(statistics: TokenStatistics) -> float | str:
        return "odd" if len(statistics) % 2 else float(len(statistics))

    found = judge(missing, "right", "constant", on=make_truth(count))
    assert len(found.judged) == 3
    assert not [one.text for judged in found.judged for one in judged.findings if "nan" in one.text]


def test_missing_scores_are_told_with_both_shares_and_the_auc_at_both_extremes(judge):
    found = judge("PICKY")
    missing = finding(only_judged(found), "missing scores")
    assert "0% (0 of 120) of the members" in missing.found
    assert "of 120) of the non-members have no score (not sure (" in missing.found
    low, high = (
        float(text.split(" ")[0]) for text in missing.meaning.split("it is ")[1].split(" and ")
    )
    # Missing non-members ranked lowest look like a good detector, highest like a bad one.
    assert low > 0.8
    assert low - high > 0.3
    gaps = found.ranking.differences.where(dataset="all", copies="all").rows
    assert gaps
    assert all(gap["own_rows"] and np.isfinite(gap["low"]) for gap in gaps)


@pytest.fixture(scope="module")
def with_retrained(truth) -> GroundTruth:
    model = make_model(
        truth.models[0].rows, model="retrained", axes=dict(truth.models[0].axes), dose=8, key=40
    )
    return replace(truth, models=(*truth.models, model))


def test_on_the_retrained_model_the_forgotten_members_must_be_at_chance(judge, with_retrained):
    one, leak = judge("right", "LEAK", on=with_retrained).judged
    assert "chance on the retrained model" in wrong_checks(leak)
    said = finding(one, "chance on the retrained model")
    assert said.severity != "wrong"
    model = with_retrained.models[-1]
    score = np.array(
        [(s.log_probability - s.mean).mean() for s in model.evidence.statistics["text"]]
    )
    test = np.array([row.split == "test" for row in model.rows])
    member = np.array([row.side == "member" for row in model.rows])
    seen = np.array([row.example_id in model.copies for row in model.rows])
    forgotten = auc(score[test & member & ~seen], score[test & ~member])
    kept = auc(score[test & seen], score[test & ~member])
    assert kept > 0.8 > 0.65 > forgotten
    assert f"AUC {forgotten:.2f} [" in said.found.partition("did see")[0]
    assert f"did see: AUC {kept:.2f} [" in said.found


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
    """Scores of the tune rows may be anything: no number of the report changes."""
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


def test_the_auc_within_length_against_a_slow_count(truth):
    model = truth.models[0]
    loaded = cohort_models(truth)[0].loaded
    column = Column("loss", "-")
    lengths = np.array([len(one) for one in model.evidence.statistics["text"]], dtype=np.float64)
    settings = AnalysisSettings.model_validate(dict(truth.analysis))
    found = within_length(loaded, column, [lengths], settings)
    arm = loaded[0]
    rows = np.flatnonzero(arm.test)
    smaller = min(arm.member[rows].sum(), (~arm.member[rows]).sum())
    count = min(5, smaller // 10)
    edges = np.quantile(lengths[rows], np.arange(1, count) / count)
    scores = arm.scores[:, arm.index[column]]
    won, pairs_of_members = 0.0, 0
    for stratum in range(count):
        here = [row for row in rows if np.searchsorted(edges, lengths[row], side="left") == stratum]
        members = [row for row in here if arm.member[row]]
        others = [row for row in here if not arm.member[row]]
        if not members or not others:
            continue
        for member in members:
            placed = [
                (scores[member] > scores[one]) + 0.5 * (scores[member] == scores[one])
                for one in others
            ]
            won += float(np.mean(placed))
            pairs_of_members += 1
    assert found.within.value == pytest.approx(won / pairs_of_members)
    assert found.within.low < found.within.value < found.within.high


def test_length_that_explains_what_is_found_is_told():
    """Members are made longer, and the detector sees nothing but length with some noise."""
    truth = make_truth(100)
    model = truth.models[0]
    order = {row.example_id: at for at, row in enumerate(model.rows)}
    lengths = np.array([len(one) for one in model.evidence.statistics["text"]])
    by_length = np.argsort(np.argsort(lengths))
    random = np.random.Generator(np.random.Philox(key=3))
    likely = random.random(len(lengths)) < by_length / len(lengths)
    rows = tuple(
        replace(row, side="member" if likely[at] else "nonmember", group=f"g{at}")
        for at, row in enumerate(model.rows)
    )
    models = tuple(replace(one, rows=rows) for one in truth.models)
    noise = random.normal(size=len(lengths))

    def noisy_length(example: spikein.ExampleEvidence) -> float:
        from inject.examples.example import example_id

        at = order[example_id(example.text)]
        return float(lengths[at] + 6.0 * noise[at])

    found = validate_detectors([noisy_length], replace(truth, models=models), source="here")
    one = only_judged(found)
    assert severity(one, "length") == "look"
    assert {"chance on the base model", "chance on the clean twin"} <= wrong_checks(one)


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
    assert "it needs view lowercase, which this ground truth does not hold" in declared
    assert "`spikein bundle RUN --with lowercase`" in declared


def test_detectors_that_read_withheld_texts_score_the_others_alone(judge, tmp_path):
    """What a level of access does not allow is not taken for a withheld text."""
    truth = make_truth(40, datasets=("news", "secret"), protected="secret")
    stored = [get_detector(name).detector for name in ("loss", "min_k_plus_plus", "zlib", "dc_pdd")]
    found = judge("right", "text_length", "ids", *stored, on=bundled(truth, tmp_path))
    assert not found.refused
    said = {one.name: finding(one, "missing scores") for one in found.judged}
    missing = {name for name, one in said.items() if one.severity != "passed"}
    assert missing == {"wrong.text_length", "wrong.ids", "zlib (yours)", "dc_pdd (yours)"}
    for name in missing:
        assert said[name].severity == "note"
        assert "50% (40 of 80) of the members and 50% (40 of 80)" in said[name].found
        assert "protected" in said[name].found


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
    measured = measure_columns(work.arms, [column], work.datasets, work.cells, settings)[column]
    report = next(
        row
        for row in work.metric_rows(column, "default", measured)
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


def test_one_row_that_a_detector_fails_on_is_a_missing_score_and_not_a_refusal(judge, truth):
    """The row is among the first, which are tried, timed, and scored alone."""
    bad = truth.models[0].evidence.texts[1]

    def picky(example):
        if example.text == bad:
            raise ValueError("no such word")
        return float((example.statistics["text"].log_probability).mean())

    one = only_judged(judge(picky))
    assert severity(one, "missing scores") == "note"
    assert any("ValueError: no such word" in note for note in one.notes)
    assert severity(one, "batch") == "passed"
    assert not wrong_checks(one)


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
