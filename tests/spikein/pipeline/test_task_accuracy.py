"""Task accuracy through the whole graph: models, stored answers, and findings."""

import pytest

from analysis.findings import read_table
from detect.task_accuracy.answers import read_accuracy
from detect.task_accuracy.scoring import NO_ANSWER
from inject.examples.example import read_examples
from inject.stream.exposures import read_exposures, seen_copy_counts
from tests.spikein.tiny import graph_of, write_tiny


@pytest.mark.slow
def test_arm_base_and_clean_twin_answer_the_closed_questions(shared_run):
    rows = read_examples(shared_run.stored(shared_run.node.examples))
    paths = shared_run.artifacts("accuracy")
    assert len(paths) == 3
    assert sum("twin" in path.name for path in paths) == 1
    for path in paths:
        answers = read_accuracy(path)
        assert [row.example_id for row in answers] == [row.example_id for row in rows]
        for answered, example in zip(answers, rows, strict=True):
            closed = example.fields.get("form") in ("passage", "choice")
            assert (answered.reason is None) == closed
            assert answered.reason in (None, NO_ANSWER)
            assert answered.side == example.side


@pytest.mark.slow
def test_accuracies_match_the_stored_answers(shared_run):
    copies = seen_copy_counts(read_exposures(shared_run.stored(shared_run.node.trained)))
    stored = shared_run.artifacts("accuracy")
    [after] = [path for path in stored if not {"base", "twin"} & {*path.name.split("-")}]
    answers = [row for row in read_accuracy(after) if row.reason is None]
    table = read_table(shared_run.folder, "accuracy").to_pylist()
    for side in ("member", "nonmember"):
        inside = [
            row
            for row in answers
            if row.side == side and (side == "nonmember" or copies.get(row.example_id))
        ]
        [cell] = [
            row
            for row in table
            if (row["quantity"], row["scoring"], row["side"], row["phase"])
            == ("accuracy", "plain", side, "after")
        ]
        assert cell["value"] == pytest.approx(
            sum(row.correct_plain for row in inside) / len(inside)
        )
        assert cell["n_members" if side == "member" else "n_nonmembers"] == len(inside)
    assert {row["dataset"] for row in table} == {"fictional"}
    assert {"change", "gap", "excess"} <= {row["quantity"] for row in table}


def test_task_accuracy_is_skipped_if_disabled_or_without_closed_questions(tmp_path):
    write_tiny(tmp_path)
    (tmp_path / "n.csv").write_text("url,date,title,text\nu,2020-01-01,T,a text\n")
    news = f"contaminants=[{{dataset: news, path: {tmp_path}/n.csv, members: 2, nonmembers: 2}}]"
    kinds = [
        [step.kind for step in graph_of(tmp_path, *overrides).graph.steps].count("accuracy")
        for overrides in ([], ["twins.clean=true"], ["analysis.task_accuracy=false"], [news])
    ]
    assert kinds == [2, 3, 0, 0]


def test_the_results_read_the_answers_that_scores_are_corrected_with(tmp_path):
    write_tiny(tmp_path)
    for twins, expected in (("true", 3), ("false", 2)):
        results = graph_of(tmp_path, f"twins.clean={twins}").results
        read = [name for name in results.inputs if name.endswith("answers")]
        assert len(read) == expected
