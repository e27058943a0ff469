"""DE-COP in a whole experiment: each model is asked once, and its answers are stored."""

import pyarrow.parquet as pq
import pytest

from detect.choices.answers import read_answers
from detect.engine.measured_cost import read_cost
from inject.errors import InputError
from spikein.config.load import read_experiment
from spikein.pipeline.build_graph import build_graph
from tests.detect.evidence_samples import scores_record
from tests.spikein.tiny import run, write_tiny

SHORT = (
    "contaminants.0={dataset: fictional, members: 6, nonmembers: 6, held_out: 4, "
    "options: {forms: [question]}}"
)


@pytest.fixture
def folder(tmp_path):
    write_tiny(tmp_path)
    shape = tmp_path / "shape.yaml"
    shape.write_text(shape.read_text().replace("context: 128", "context: 2048"))
    return tmp_path


def kinds(folder, *overrides):
    checked = read_experiment(folder / "tiny.yaml", overrides=overrides)
    found = build_graph(checked)
    return [step.kind for step in found.graph.steps], found.notes


def test_the_answers_are_stored_and_scored(folder):
    result = run(folder, SHORT, "detect.detectors=[loss, de_cop]", "analysis.min_members=2")
    stored = [path for path in (folder / "store" / "choices").iterdir() if path.is_dir()]
    # Of the base model and of the contaminated one, about examples and about held-out rows.
    answers = [read_answers(path) for path in stored]
    assert sorted(map(len, answers)) == [4, 4, 12, 12]
    for one in answers:
        assert all(row.log_probability.shape == (24, 4) for row in one.values())
        assert all(row.document.startswith("fictional\n") for row in one.values())
    for path, rows in zip(stored, answers, strict=True):
        cost = read_cost(path)
        assert cost.passes == 24 * len(rows)
        # Four passages and an instruction in each of 24 orders, whose beginnings are shared.
        assert 24 * len(rows) < cost.tokens_in
    scores = pq.read_table(result.folder / "scores.parquet").to_pylist()
    found = [row["score"] for row in scores if row["detector"] == "de_cop"]
    assert found
    assert all(0 <= score <= 1 for score in found)
    records = [scores_record(path) for path in (folder / "store").glob("scores/*/scores.parquet")]
    assert len(records) == 2
    for record in records:
        assert any("calibrated on 4 clean passages" in note for note in record["notes"])
        assert not any("NOT calibrated" in note for note in record["notes"])


def test_a_dataset_without_paraphrases_leaves_it_out_and_says_so(folder):
    rows = folder / "rows.jsonl"
    rows.write_text("".join(f'{{"text": "a row of {n} words"}}\n' for n in range(40)))
    own = f"contaminants=[{{dataset: rows, path: {rows}, members: 9, nonmembers: 9}}]"
    steps, notes = kinds(folder, own, "detect.detectors=all", "detect.generate=true")
    assert "choices" not in steps
    assert any("de_cop needs paraphrases" in note and "is left out" in note for note in notes)
    with pytest.raises(InputError, match="Spike a dataset that brings paraphrases"):
        kinds(folder, own, "detect.detectors=[de_cop]")


def test_as_dear_as_it_is_all_takes_it_with_leave_alone(folder):
    assert "choices" in kinds(folder, "detect.detectors=all", "detect.generate=true")[0]
    steps, notes = kinds(folder, "detect.detectors=all")
    assert "choices" not in steps
    assert any("de_cop" in note and "detect.generate=true" in note for note in notes)
    assert "choices" in kinds(folder, "detect.detectors=[loss, de_cop]")[0]
