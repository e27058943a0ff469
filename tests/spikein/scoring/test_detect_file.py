import json

import numpy as np
import pytest
import torch

import spikein
from detect.detector_settings import parse_detectors
from detect.detectors.wbc import OTHER_TOKENS
from detect.engine.forward_pass import token_statistics
from detect.engine.target import load_target
from detect.policy import ScoringPolicy
from detect.user_rows.labelled_rows import read_labelled
from inject.errors import InputError
from inject.examples.example import example_id
from spikein.scoring.detect_file import DetectFileRequest, detect_file
from tests.conftest import make_texts
from tests.detect.evidence_samples import scores_record


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def examples(tmp_path):
    rows = [{"input": text, "label": row % 2} for row, text in enumerate(make_texts(12, words=9))]
    return write(tmp_path / "examples.jsonl", rows)


@pytest.fixture
def small_reference(tmp_path):
    """A reference with another vocabulary: word pieces of its own, and fewer of them."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = {letter: index for index, letter in enumerate("?abcdefghijklmnopqrstuvwxyz.T ")}
    backend = Tokenizer(models.WordLevel(letters, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    folder = tmp_path / "reference"
    with torch.random.fork_rng():
        torch.manual_seed(1)
        config = LlamaConfig(
            vocab_size=len(letters),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=256,
        )
        LlamaForCausalLM(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=backend).save_pretrained(folder)
    return folder


def scores_of(table, detector):
    return [row for row in table.to_pylist() if row["detector"] == detector]


def test_every_detector_scores_a_file(tmp_path, examples, tiny_model_path, small_reference):
    result = detect_file(
        DetectFileRequest(
            model=str(tiny_model_path),
            examples=examples,
            out=tmp_path / "scores.parquet",
            reference=str(small_reference),
            frequency=write(tmp_path / "f.jsonl", [{"text": text} for text in make_texts(50)]),
            policy=ScoringPolicy(long="truncate"),
            cache=tmp_path / "cache",
        )
    )
    assert result.rows.labels == [False, True] * 6
    assert {row["detector"] for row in result.scores.to_pylist()} == {
        "loss", "zlib", "lowercase", "reference", "min_k", "min_k_plus_plus", "surp", "dc_pdd",
        "blind", "wbc", "ez_mia", "gap_k", "acmia", "tag_tab",
        "grad_norm", "pac", "pd",
    }  # fmt: skip
    # Models of different tokenizers cannot be compared token by token.
    assert {row["reason"] for row in scores_of(result.scores, "wbc")} == {OTHER_TOKENS}
    assert scores_record(result.out)["policy"]["long"] == "truncate"
    # The reference model was fed its own tokens, not the target's.
    reference = load_target(str(small_reference))
    texts = result.rows.texts
    own = token_statistics(reference, texts, ScoringPolicy())
    loss = scores_of(result.scores, "loss")
    for row, found in enumerate(scores_of(result.scores, "reference")):
        expected = loss[row]["score"] - float(np.mean(own[row].log_probability))
        assert found["score"] == pytest.approx(expected, abs=1e-4)
        assert len(own[row]) == len(texts[row]) - 1


def test_without_labels_reference_and_frequency_the_rest_runs_and_says_so(
    tmp_path, tiny_model_path
):
    rows = [{"text": "the river town", "id": 7}, {"text": "the river town", "id": 7}, {"text": ""}]
    result = detect_file(
        DetectFileRequest(
            model=str(tiny_model_path),
            examples=write(tmp_path / "rows.jsonl", rows),
            out=tmp_path / "scores.parquet",
        )
    )
    left_out = {note.split()[0] for note in result.notes if "is left out" in note}
    assert left_out >= {"reference", "dc_pdd", "blind", "lira", "recall", "wbc", "ez_mia", "de_cop"}
    scored = {row["detector"] for row in result.scores.to_pylist()}
    assert left_out | scored == {one.name for one in parse_detectors("all")}
    assert not left_out & scored
    loss = scores_of(result.scores, "loss")
    assert [row["example_id"] for row in loss] == ["7", "7", example_id("")]
    assert loss[0]["score"] == loss[1]["score"]
    assert loss[2]["reason"] == "empty text"


def test_what_is_given_and_not_used_is_told(tmp_path, examples, tiny_model_path):
    result = detect_file(
        DetectFileRequest(
            model=str(tiny_model_path),
            examples=examples,
            out=tmp_path / "scores.parquet",
            detectors="loss",
            reference=str(tiny_model_path),
        )
    )
    assert any("is not used" in note for note in result.notes)


@pytest.mark.parametrize(
    ("label", "expected"),
    [(0, False), ("1", True), (True, True), ("false", False), (1.0, True), ("True", True)],
)
def test_labels_in_their_usual_forms(label, expected, tmp_path):
    path = write(tmp_path / "rows.jsonl", [{"text": "a", "label": label}])
    assert read_labelled(path).labels == [expected]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"text": "a", "label": 1}, {"text": "b", "label": 2}], r"rows.jsonl:2: label 2"),
        ([{"text": "a", "label": "yes"}], r"rows.jsonl:1: label 'yes'"),
        ([{"text": "a", "label": [1]}], r"rows.jsonl:1: label \[1\]"),
        ([{"text": "a"}, {"text": "b", "label": 1}], r"rows.jsonl:1: this row has no label"),
        ([{"words": "a"}], r"rows.jsonl:1: the row has no text, only words"),
        ([{"text": 5}], r"rows.jsonl:1: 'text' holds int"),
    ],
)
def test_bad_rows_name_file_and_line(rows, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_labelled(write(tmp_path / "rows.jsonl", rows))


def test_everything_is_checked_before_a_model_is_loaded(tmp_path, examples, monkeypatch):
    def loaded(*args, **kwargs):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("detect.engine.target.load_target", loaded)
    good = {"model": str(tmp_path), "examples": examples, "out": tmp_path / "scores.parquet"}
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").touch()
    for change, message in [
        ({"model": str(tmp_path / "none")}, "no such model folder"),
        ({"examples": str(tmp_path / "none.jsonl")}, "no such file"),
        ({"out": tmp_path / "none" / "scores.parquet"}, "does not exist"),
        ({"out": tmp_path}, "is a folder"),
        ({"detectors": "lose"}, "Did you mean"),
        ({"detectors": "reference"}, "--reference"),
        ({"reference": "./none"}, "no such model folder"),
        ({"frequency": str(tmp_path / "none.txt")}, "no such file"),
    ]:
        with pytest.raises(InputError, match=message):
            detect_file(DetectFileRequest(**(good | change)))


@pytest.mark.data
def test_wikimia_is_scored_and_the_blind_classifier_finds_its_shift(
    data_folder, tmp_path, tiny_model_path
):
    result = detect_file(
        DetectFileRequest(
            model=str(tiny_model_path),
            examples=str(data_folder / "detect/wikimia/WikiMIA_length64.jsonl"),
            out=tmp_path / "scores.parquet",
            detectors="loss,min_k,blind",
        )
    )
    labels = np.array(result.rows.labels)
    assert len(labels) == 542
    blind = np.array([row["score"] for row in scores_of(result.scores, "blind")])
    auc = np.mean(blind[labels][:, None] > blind[~labels][None, :])
    assert auc > 0.8
    assert not np.isnan([row["score"] for row in scores_of(result.scores, "min_k")]).any()


def test_rows_and_detectors_that_stand_again_and_empty_texts_are_counted(tmp_path, tiny_model_path):
    texts = make_texts(8, words=9)
    rows = [{"text": text, "label": at % 2, "id": f"r{at}"} for at, text in enumerate(texts)]
    rows += [
        {"text": texts[0], "label": 0, "id": "r0"},
        {"text": texts[1], "label": 0, "id": "again"},
        {"text": None, "label": 1, "id": "null"},
        {"text": " ", "label": 0, "id": "r3"},
    ]
    result = detect_file(
        DetectFileRequest(
            model=str(tiny_model_path),
            examples=write(tmp_path / "rows.jsonl", rows),
            out=tmp_path / "scores.parquet",
            detectors="loss,zlib,loss",
        )
    )
    assert list(result.notes[:5]) == [
        "loss (-) is named 2 times, and scored once",
        "2 texts are empty or null.",
        "2 rows have the text of an earlier row, and count as one group with it.",
        "1 texts stand on both sides: no score can tell them apart.",
        "1 rows have the id of an earlier row with another text; each counts.",
    ]
    unscored = [row for row in scores_of(result.scores, "loss") if row["reason"] is not None]
    assert [row["row"] for row in unscored] == [10, 11]
    clean = detect_file(
        DetectFileRequest(
            model=str(tiny_model_path),
            examples=write(tmp_path / "clean.jsonl", rows[:8]),
            out=tmp_path / "clean.parquet",
            detectors="loss,zlib",
        )
    )
    assert clean.notes == ()


def test_a_text_that_stands_twice_is_no_second_observation(tmp_path, tiny_model_path):
    """Every row twice says no more than every row once."""
    texts = make_texts(40, words=9)
    labels = [at % 2 == 0 for at in range(40)]
    once = spikein.score_texts(tiny_model_path, texts, detectors="loss", labels=labels)
    twice = spikein.score_texts(tiny_model_path, texts * 2, detectors="loss", labels=labels * 2)
    one, other = (found.aucs.to_pylist()[0] for found in (once, twice))
    assert other["auc"] == one["auc"]
    assert other["high"] - other["low"] > 0.95 * (one["high"] - one["low"])
