"""Continuations through the whole graph, and through `spikein detect`: written once, then read."""

import json

import pytest

import spikein
from detect.generation.continuations import read_continuations
from inject.examples.example import read_examples
from spikein.api.plan import plan as plan_experiment
from spikein.scoring.detect_file import DetectFileRequest, detect_file
from tests.conftest import make_texts
from tests.spikein.tiny import run, write_tiny

WRITING = "detect.detectors=[loss, prefix, ngram_coverage:samples=3]"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("continuations")
    write_tiny(folder)
    return folder


@pytest.mark.slow
def test_models_write_once_for_all_detectors(lab) -> None:
    result = run(lab, WRITING)
    store = lab / "store"
    asked = list(store.glob("continuations/*-????????????"))
    # Greedy and sampled, of the base model and of the arm's.
    assert len(asked) == 4
    [examples] = store.glob("examples/*-????????????")
    ids = {row.example_id for row in read_examples(examples)}
    for path in asked:
        rows = read_continuations(path)
        assert set(rows) == ids
        assert all(row.texts for row in rows.values())
        assert sum(row.tokens_in for row in rows.values()) > 0
    again = run(lab, "detect.detectors=[loss, prefix, samia:samples=3]")
    assert len(list(store.glob("continuations/*-????????????"))) == 4
    assert (result.folder.name, again.folder.name) == ("1", "2")


def test_all_leaves_them_out_with_a_note_until_models_may_write(lab) -> None:
    def notes(*overrides):
        return " ".join(
            plan_experiment(lab / "tiny.yaml", overrides=overrides, store=lab / "store").notes
        )

    said = notes("detect.detectors=all")
    assert "prefix needs continuations, which are not given, and is left out." in said
    assert "Set detect.generate=true, or name the detector." in said
    assert "prefix" not in notes("detect.detectors=all", "detect.generate=true")
    assert "prefix" not in notes("detect.detectors=[prefix]")


def test_detect_lets_a_model_write(tmp_path, tiny_model_path) -> None:
    rows = [{"text": text, "label": number % 2} for number, text in enumerate(make_texts(6))]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def detected(**more):
        return detect_file(
            DetectFileRequest(
                model=str(tiny_model_path),
                examples=str(tmp_path / "rows.jsonl"),
                out=tmp_path / "scores.parquet",
                **more,
            )
        )

    named = detected(detectors="prefix,samia:samples=2")
    scores = {row["detector"]: row["score"] for row in named.scores.to_pylist()}
    assert set(scores) == {"prefix", "samia"}
    assert all(0 <= score <= 1 for score in scores.values())
    quiet = detected()
    assert any(
        "prefix needs continuations" in note and "--generate" in note for note in quiet.notes
    )
    assert "prefix" not in set(quiet.scores["detector"].to_pylist())
    options = spikein.ScoringOptions(generate=True)
    found = spikein.score_texts(
        str(tiny_model_path), [row["text"] for row in rows], detectors="all", options=options
    )
    assert {"prefix", "cdd"} <= set(found.scores["detector"].to_pylist())
