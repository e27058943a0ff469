import pytest

from analysis.checks.check import checks_table
from analysis.checks.validity import check_validity
from analysis.page.sections.checks import background_parts
from analysis.tables import TREND
from inject.overlap.filter import OverlapFacts
from inject.overlap.index import UncheckableExample
from inject.stream.exposures import CopyName, CopyOutcomes
from tests.analysis.made_findings import made_arm, number


def cell(value, half=0.05, setting="default"):
    counts = {"n_members": 400, "n_nonmembers": 480}
    return number(value, value - half, value + half, setting=setting, **counts)


def table(model, axes=(), more=None, **cells):
    """Return an arm with cells by `detector__copies`; `more` has cells by their full key."""
    numbers = {}
    for name, value in cells.items():
        detector, _, suffix = name.partition("__")
        metric = TREND if suffix == "trend" else "auc"
        copies = {"": "all", "trend": "all", "high": "4+"}.get(suffix, suffix)
        for dataset in ("all", "news"):
            for selection in ("default", "tuned"):
                numbers[dataset, detector, selection, copies, metric] = value
    return made_arm(numbers | (more or {}), *axes, model=model)


def verdicts(tables, audits=None):
    return [check.verdict for check in check_validity(tables, audits or {})]


def test_everything_at_chance_passes():
    base = table("base", blind=cell(0.51), loss=cell(0.48), min_k=cell(0.53))
    arm = table("contaminated", blind=cell(0.7), loss=cell(0.8), loss__0=cell(0.52))
    checks = check_validity([base, arm], {"arm": {"passed": True, "members": 1200}})
    assert [check.verdict for check in checks] == ["passed"] * 4
    assert ("members", "1,200") in checks[0].facts
    assert "2 of 2 intervals contain 0.5" in checks[2].sentence
    assert "within the required 0.4 to 0.6" in checks[2].sentence
    # The verdict line reports the AUCs that remain possible.
    assert checks[2].verdict_line == "passed: AUCs from 0.43 to 0.58 remain possible"
    assert checks[0].verdict_line == "passed"


def test_the_checks_are_rows_of_numbers():
    base = table("base", axes=[("train.lr", "0.1")], blind=cell(0.51), loss=cell(0.46, 0.08))
    audits = {"a": {"passed": True, "copies planned": 7, "copies found": 7}}
    fed = {"a": CopyOutcomes(planned=7, whole=6, altered=1, partly=0, never=0, first_altered=())}
    checks = check_validity([base], audits, fed)
    rows = checks_table(checks, ["train.lr"]).to_pylist()
    heads = {row["check"]: row for row in rows if row["verdict"]}
    assert [row["verdict"] for row in heads.values()] == [check.verdict for check in checks]
    counts = [
        (heads[name]["total"], heads[name]["n_failed"]) for name in ("streams", "fed", "base")
    ]
    assert counts == [(7, 0), (7, 1), (1, 0)]
    assert heads["base"]["note"] == checks[3].sentence
    assert (heads["no copy"]["verdict"], heads["no copy"]["low"]) == ("not measured", None)
    (auc,) = [row for row in rows if row["check"] == "base" and not row["verdict"]]
    assert (auc["train.lr"], auc["model"], auc["detector"], auc["dataset"]) == (
        "0.1", "base", "loss", "all",
    )  # fmt: skip
    # Its own interval is wider than the chance range of as many rows.
    assert (auc["value"], auc["low"]) == (0.46, pytest.approx(0.38))
    assert (heads["base"]["low"], heads["base"]["high"]) == (auc["low"], auc["high"])
    assert (auc["needed_low"], auc["needed_high"]) == (0.4, 0.6)
    assert f"from {auc['low']:.2f} to {auc['high']:.2f}" in checks[3].margin


def test_each_check_can_fail():
    base = table("base", blind=cell(0.65), loss=cell(0.35))
    arm = table("contaminated", loss=cell(0.8), loss__0=cell(0.65))
    assert verdicts([base, arm], {"arm": {"passed": False}}) == ["failed"] * 4


def test_base_check_covers_all_settings_on_the_page():
    """The default loss is at chance but a tuned setting is not: the check fails and names it."""
    tuned = {("all", "min_k", "tuned", "all", "auc"): cell(0.3, setting="k=0.9")}
    base = table("base", more=tuned, loss=cell(0.5), min_k=cell(0.5))
    check = check_validity([base], {})[2]
    assert check.verdict == "failed"
    assert "the farthest is min_k (k=0.9), AUC 0.30 [0.25, 0.35]" in check.sentence
    assert any(row.label == "min_k (k=0.9)" for row in check.rows)


def test_a_single_dataset_can_fail_the_check():
    books = {
        ("books", "loss", selection, "all", "auc"): cell(0.9) for selection in ("default", "tuned")
    }
    check = check_validity([table("base", more=books, loss=cell(0.5))], {})[2]
    assert check.verdict == "failed"
    assert "books" in check.sentence


def test_one_interval_of_many_off_chance_is_not_a_failure():
    names = [f"d{at}" for at in range(12)]
    base = table("base", **{name: cell(0.555 if name == "d3" else 0.5) for name in names})
    assert not base.get(detector="d3").contains(0.5)
    check = check_validity([base], {})[2]
    assert check.verdict == "cannot tell", "one AUC off chance does not prove the absence of a bias"
    assert "11 of 12 intervals contain 0.5" in check.sentence


def test_nine_and_nine_rows_cannot_pass():
    few = cell(0.5, 0.05) | {"n_members": 9, "n_nonmembers": 9}
    base = table("base", blind=few, loss=few)
    arm = table("contaminated", loss=cell(0.8), loss__0=few)
    checks = check_validity([base, arm], {})
    assert [check.verdict for check in checks[1:]] == ["cannot tell"] * 3
    assert "9 members and 9 non-members" in checks[2].sentence
    # The range that a rank-sum test on nine and nine rows could miss.
    assert checks[2].verdict_line == "cannot tell: AUCs from 0.23 to 0.77 remain possible"


def test_altered_copies_fail_and_missing_copies_are_reported():
    name = CopyName("ab12", "news", 3, "whole")
    good = CopyOutcomes(planned=10, whole=7, altered=0, partly=1, never=2, first_altered=())
    bad = CopyOutcomes(planned=10, whole=9, altered=1, partly=0, never=0, first_altered=(name,))
    (check,) = [c for c in check_validity([], {}, {"a": good}) if c.name.startswith("What the")]
    assert check.verdict == "passed"
    assert "3 were not reached, or not completely" in check.sentence
    (check,) = [c for c in check_validity([], {}, {"a": good, "b": bad}) if c.key == "fed"]
    assert check.verdict == "failed"
    assert "1 had other tokens" in check.sentence
    assert ("altered in b", "ab12 (news), copy 3") in check.facts
    assert ("b", ("9", "1", "0", "0")) in check.streams.rows


def facts_of(**counts):
    few = tuple(
        UncheckableExample(example_id=f"e{n}", dataset="quiz", source_id=f"row {n}", words=3.5)
        for n in range(counts.pop("unchecked", 0))
    )
    facts = {"documents": 90, "bytes": 9, "offending": 0, "dropped": 0, "examples": 80, **counts}
    return OverlapFacts(rules="13 words in a row", unchecked=few, **facts)


def test_uncheckable_rows_are_listed_and_prevent_a_pass():
    def check(*facts):
        return next(c for c in check_validity([], {}, {}, facts) if "background" in c.name)

    assert check(facts_of(offending=2, dropped=2)).verdict == "passed"
    assert check(facts_of(offending=2, dropped=0)).verdict == "failed"
    some = check(facts_of(unchecked=80))
    assert some.verdict == "cannot tell"
    assert "80 of the rows have too few words" in some.sentence
    assert "quiz row 0, quiz row 1" in some.sentence
    assert ("quiz row 79 (e79)", "3.5 words") in some.facts
    sentence, fold = background_parts([], facts_of(unchecked=300))
    table, more = fold.parts
    assert len(table.rows) + int(more.split()[0]) == 300
    assert "listed below" in sentence


def test_a_clean_twin_must_stay_at_chance():
    arm = table("contaminated", loss=cell(0.8))
    assert "Clean twin" not in [check.name for check in check_validity([arm], {})]
    good = table("twin", loss=cell(0.52), lira=cell(0.47))
    check = check_validity([arm, good], {})[-1]
    assert (check.name, check.verdict) == ("Clean twin", "passed")
    # A base model at chance does not make the twin pass.
    leaked = [table("base", loss=cell(0.5)), table("twin", loss=cell(0.7))]
    assert [check.verdict for check in check_validity(leaked, {})][2::2] == ["passed", "failed"]


def test_an_audit_without_a_verdict_fails():
    assert verdicts([], {"arm": {"members": 3}})[0] == "failed"


def test_shared_facts_appear_once_and_others_per_stream():
    audits = {
        name: {"passed": name != "b", "copies": 4, "tokens": at} for at, name in enumerate("abc")
    }
    check = check_validity([], audits)[0]
    assert check.verdict == "failed"
    assert check.sentence == "1 of 3 streams failed: b."
    assert check.facts == (("copies", "4"),)
    assert check.streams.columns == ("passed", "tokens")
    assert check.streams.rows[1] == ("b", ("no", "1"))


def test_unmeasured_checks_are_reported_as_such():
    tables = [table("contaminated", loss=cell(0.8))]
    assert verdicts(tables) == ["not measured"] * 4
    (blind,) = [check for check in check_validity(tables, {}) if check.name == "Blind classifier"]
    assert blind.sentence == "There are no scores of the detector blind."


def test_room_of_an_unbiased_check_includes_chance():
    """Three AUCs of 0.45: jointly none is far from 0.5, although each interval excludes it."""
    arms = [
        table("contaminated", [("lr", f"{value}")], loss__0=cell(value, 0.04))
        for value in (0.45, 0.451, 0.452)
    ]
    check = check_validity(arms, {})[3]
    assert check.verdict_line == "passed: AUCs from 0.41 to 0.50 remain possible"
    assert "Individually, 0 of 3 intervals contain 0.5." in check.sentence
    head, *aucs = checks_table([check], ["lr"]).to_pylist()
    assert (head["low"], head["high"]) == (pytest.approx(0.41), 0.5)
    assert [(row["low"], row["high"]) for row in aucs] == [
        (row.auc.low, row.auc.high) for row in check.rows
    ]


def test_verdicts_are_corrected_for_the_number_of_aucs():
    arms = [
        table("contaminated", [("lr", str(at))], loss__0=cell(value))
        for at, value in enumerate((0.55, 0.5, 0.49))
    ]
    assert verdicts(arms[:1])[3] == "failed"
    assert verdicts(arms)[3] == "cannot tell"
    far_off = table("contaminated", [("lr", "x")], loss__0=cell(0.7))
    assert verdicts([*arms, far_off])[3] == "failed"


def test_words_tfidf_and_length_decide_together():
    """Words and TF-IDF find nothing, but lengths distinguish the sides: the check fails."""
    lengths = {
        (dataset, "blind", "features=length", "all", "auc"): cell(0.62, setting="features=length")
        for dataset in ("all", "news")
    }
    base = table("base", more=lengths, blind=cell(0.5), loss=cell(0.5))
    check = check_validity([base], {})[1]
    assert check.verdict == "failed"
    assert "the farthest is blind (features=length), AUC 0.62" in check.sentence
