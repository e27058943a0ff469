"""Findings: the tables of all questions survive a round trip through one table."""

from random import Random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import results
from analysis.findings import (
    COLUMNS,
    QUESTIONS,
    as_findings,
    as_table,
    join_findings,
    question_table,
    questions,
    read_findings,
    table_schema,
    write_findings,
)
from analysis.metrics import TUNE_AUC
from tests.analysis.made_findings import made_arm, number
from tests.analysis.synthetic import FAST, make_arm

AXES = ["copies", "train.lr"]
VALUES = {
    pa.string(): (None, "", "auc", "=x"),
    pa.float64(): (None, 0.1, -0.0, float("nan"), float("inf")),
    pa.int64(): (None, 0, -3),
}


def tables(random: Random) -> dict[str, pa.Table]:
    """Return random questions in any order with any rows, possibly none."""
    by_question = {}
    for question in random.sample(sorted(QUESTIONS), random.randint(1, 4)):
        fields = list(table_schema(question, AXES))
        rows = [
            {field.name: random.choice(VALUES[field.type]) for field in fields}
            for _ in range(random.randint(0, 3))
        ]
        by_question[question] = question_table(question, AXES, rows)
    return by_question


@given(st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_question_tables_round_trip_from_one_or_several_steps(tmp_path_factory, random):
    made = tables(random)
    single, several = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("several")
    write_findings(single, made)
    join_findings(several, [as_findings(*item) for item in made.items()])
    for folder in (single, several):
        findings = read_findings(folder)
        assert questions(findings) == list(made)
        for question, table in made.items():
            read_back = as_table(findings, question)
            assert read_back.schema == table.schema
            # As text, since NaN is not equal to itself.
            assert repr(read_back.to_pylist()) == repr(table.to_pylist())


def test_a_new_question_needs_a_function_and_a_registration(tmp_path, monkeypatch):
    def longest_text(work, chosen):
        longest = max(len(example.text) for arm in work.loaded for example in arm.examples)
        measured = {"metric": "characters", "value": longest}
        return [{**work.cohort.columns(), "model": work.cohort.model, **measured}]

    monkeypatch.setitem(results.QUESTIONS, "longest_text", longest_text)
    arm = make_arm(tmp_path, axes={"train.lr": "1"}, seed=0, effect=1.0, n=16)
    results.write_analysis(tmp_path, results.analyse([arm], FAST))
    table = as_table(read_findings(tmp_path), "longest_text")
    assert table.column_names == ["train.lr", *(name for name in COLUMNS if name != "question")]
    (row,) = table.to_pylist()
    assert (row["train.lr"], row["model"], row["metric"]) == ("1", "contaminated", "characters")
    assert row["value"] > 0
    assert row["low"] is None


def test_lookups_default_to_all_members():
    """Findings narrowed to tuned settings keep that selection in lookups."""
    arm = made_arm({
        ("all", "loss", "default", "all", "auc"): number(0.6, 0.5, 0.7),
        ("all", "min_k", "default", "all", "auc"): number(0.7, 0.6, 0.8),
        ("all", "min_k", "tuned", "all", "auc"): number(0.8, 0.7, 0.9, tune=0.85),
        ("news", "min_k", "tuned", "1", "auc"): number(0.5, 0.4, 0.6),
    }, ("train.lr", "0.1"))  # fmt: skip
    assert arm.cohort.label() == "lr 0.1"
    assert arm.get(detector="min_k").value == 0.7
    assert [arm.reported(name).value for name in arm.values("detector")] == [0.6, 0.8]
    assert arm.reported("min_k", metric=TUNE_AUC).value == 0.85
    assert arm.get(detector="min_k", copies="1") is None
    tuned = arm.where(selection="tuned")
    assert (tuned.get(detector="min_k").value, tuned.get(detector="loss")) == (0.8, None)
    news = arm.where(dataset="news", selection="tuned").get(detector="min_k", copies="1")
    assert (news.text(), news.available, news.members) == ("0.50 [0.40, 0.60]", True, 40)
