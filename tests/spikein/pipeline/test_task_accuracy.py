"""Task accuracy through the whole graph: who is asked, what is kept, what the page says."""

from pathlib import Path

import pytest

from analysis.findings import read_table
from detect.task_accuracy.answers import read_accuracy
from detect.task_accuracy.scoring import NO_ANSWER
from inject.examples.example import read_examples
from inject.stream.exposures import read_exposures, seen_copy_counts
from spikein.api.plan import plan as plan_experiment
from tests.spikein.tiny import run, write_tiny

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("accuracy")
    write_tiny(folder)
    return folder, run(folder, "train.epochs=4", "copies={levels: [4]}")


def test_both_models_are_asked_the_closed_questions(lab) -> None:
    folder, result = lab
    store = folder / "store"
    [examples] = store.glob("examples/*-????????????")
    rows = read_examples(examples)
    asked = {path.name.split("-")[0]: path for path in store.glob("accuracy/*-????????????")}
    assert len(asked) == 2
    for path in asked.values():
        found = read_accuracy(path)
        assert [row.example_id for row in found] == [row.example_id for row in rows]
        for answered, example in zip(found, rows, strict=True):
            closed = example.fields["form"] in ("passage", "choice")
            assert (answered.reason is None) == closed
            assert answered.reason in (None, NO_ANSWER)
            assert answered.side == example.side


def test_the_table_is_what_the_answers_say(lab) -> None:
    folder, result = lab
    [model] = (
        path for path in (folder / "store").glob("model/*-????????????") if "base" not in path.name
    )
    copies = seen_copy_counts(read_exposures(model))
    [after] = (
        path
        for path in (folder / "store").glob("accuracy/*-????????????")
        if "base" not in path.name
    )
    answers = [row for row in read_accuracy(after) if row.reason is None]
    table = read_table(result.folder, "accuracy").to_pylist()
    for side in ("member", "nonmember"):
        inside = [
            row
            for row in answers
            if row.side == side and (side == "nonmember" or copies.get(row.example_id))
        ]
        [cell] = [
            row
            for row in table
            if (row["quantity"], row["scoring"], row["side"], row["moment"])
            == ("accuracy", "plain", side, "after")
        ]
        assert cell["value"] == pytest.approx(
            sum(row.correct_plain for row in inside) / len(inside)
        )
        assert cell["n_members" if side == "member" else "n_nonmembers"] == len(inside)
    assert {row["dataset"] for row in table} == {"fictional"}
    assert {"change", "gap", "excess"} <= {row["quantity"] for row in table}


def test_the_page_shows_it_with_intervals(lab) -> None:
    _, result = lab
    page = result.report.read_text()
    section = page.split('<section id="accuracy">')[1].split("</section>")[0]
    assert "How much did task accuracy gain?" in section
    assert "With calibrated scores" in section
    assert section.count('<td class="rate') == 8
    assert section.count('<td class="difference') == 6


def test_it_can_be_left_out_and_is_where_nothing_can_be_asked(lab, tmp_path: Path) -> None:
    folder, _ = lab
    for overrides in (
        ["analysis.task_accuracy=false"],
        [f"contaminants=[{{dataset: news, path: {tmp_path}/n.csv, members: 2, nonmembers: 2}}]"],
    ):
        (tmp_path / "n.csv").write_text("url,date,title,text\nu,2020-01-01,T,a text\n")
        planned = plan_experiment(folder / "tiny.yaml", overrides=overrides, store=folder / "store")
        assert not {row.kind for row in planned.rows} & {"accuracy", "accuracy_gain"}
    planned = plan_experiment(folder / "tiny.yaml", store=folder / "store")
    assert [row.kind for row in planned.rows].count("accuracy") == 2
