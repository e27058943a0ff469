"""`spikein detect` scores a file: all detectors, notes, and output."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import spikein
from detect.detector_settings import parse_detectors
from detect.detectors.wbc import OTHER_TOKENS
from inject.errors import InputError
from inject.examples.example import example_id
from spikein.scoring.options import ScoringOptions
from tests.conftest import make_texts
from tests.detect.evidence_samples import scores_record

LABELLED = [{"input": text, "label": at % 2} for at, text in enumerate(make_texts(12, words=9))]


@pytest.fixture
def small_reference(tmp_path):
    """A reference with another vocabulary: its own and fewer word pieces."""
    import torch
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


def test_all_detectors_score_a_file(detect, write, small_reference, tmp_path):
    from detect.engine.forward_pass import token_statistics
    from detect.engine.target import load_target

    result = detect(
        LABELLED,
        "all",
        reference=str(small_reference),
        frequency=write([{"text": text} for text in make_texts(50)], "f.jsonl"),
        long="truncate",
    )
    assert result.rows.labels == [False, True] * 6
    assert {row["detector"] for row in result.scores.to_pylist()} == {
        "loss", "zlib", "lowercase", "reference", "min_k", "min_k_plus_plus", "surp", "dc_pdd",
        "blind", "wbc", "ez_mia", "gap_k", "acmia", "tag_tab",
        "grad_norm", "pac", "pd",
    }  # fmt: skip
    # Models of different tokenizers cannot be compared token by token.
    assert {row["reason"] for row in scores_of(result.scores, "wbc")} == {OTHER_TOKENS}
    assert scores_record(tmp_path / "scores.parquet")["policy"]["long"] == "truncate"
    # The reference model read its own tokens, not the target's.
    texts = result.rows.texts
    own = token_statistics(load_target(str(small_reference)), texts, ScoringOptions().policy())
    loss = scores_of(result.scores, "loss")
    for row, reference_row in enumerate(scores_of(result.scores, "reference")):
        expected = loss[row]["score"] - float(np.mean(own[row].log_probability))
        assert reference_row["score"] == pytest.approx(expected, abs=1e-4)
        assert len(own[row]) == len(texts[row]) - 1


def test_detectors_without_inputs_are_skipped_and_unused_inputs_are_noted(detect, tiny_model_path):
    rows = [{"text": "the river town", "id": 7}, {"text": "the river town", "id": 7}, {"text": ""}]
    result = detect(rows, "all", knowledge_filter=str(tiny_model_path))
    skipped = {note.split()[0] for note in result.notes if "is left out" in note}
    assert skipped >= {"reference", "dc_pdd", "blind", "lira", "recall", "wbc", "ez_mia", "de_cop"}
    scored = {row["detector"] for row in result.scores.to_pylist()}
    assert skipped | scored == {detector.name for detector in parse_detectors("all")}
    assert not skipped & scored
    assert f"{tiny_model_path} is not used: no requested detector needs" in " ".join(result.notes)
    loss = scores_of(result.scores, "loss")
    assert [row["example_id"] for row in loss] == ["7", "7", example_id("")]
    assert loss[0]["score"] == loss[1]["score"]
    assert loss[2]["reason"] == "empty text"


def test_inputs_are_checked_before_a_model_is_loaded(detect, tmp_path, monkeypatch):
    def loaded(*args, **kwargs):
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("detect.engine.target.load_target", loaded)
    for change, message in [
        ({"model": str(tmp_path / "none")}, "no such model folder"),
        ({"rows": str(tmp_path / "none.jsonl")}, "no such file"),
        ({"out": tmp_path / "none" / "scores.parquet"}, "does not exist"),
        ({"out": tmp_path}, "is a folder"),
        ({"out": Path("/proc/scores.csv")}, "/proc: cannot be written"),
        ({"out": tmp_path / "scores.json"}, r"\.parquet, \.csv, \.jsonl"),
        ({"out": tmp_path / "rows.jsonl"}, "the scores would overwrite rows"),
        ({"detectors": "lose"}, "Did you mean"),
        ({"benchmark": "bookmia"}, "unknown benchmark"),
        ({"detectors": "reference"}, "reference=PATH"),
        ({"detectors": "reference", "reference": "./none"}, "no such model folder"),
        ({"detectors": "dc_pdd", "frequency": str(tmp_path / "none.txt")}, "no such file"),
        ({"detectors": "lira"}, "spikein run"),
        ({"detectors": "recall"}, "held_out=FILE"),
        ({"detectors": "de_cop"}, "Give rows three paraphrases each"),
    ]:
        with pytest.raises(InputError, match=message) as caught:
            detect(**{"rows": LABELLED, **change})
        assert "detect." not in str(caught.value), "hints name keys of the command"


def test_repeated_rows_and_detectors_and_empty_texts_are_counted(detect):
    texts = make_texts(8, words=9)
    rows = [{"text": text, "label": at % 2, "id": f"r{at}"} for at, text in enumerate(texts)]
    assert detect(rows, "loss,zlib").notes == ()
    rows += [
        {"text": texts[0], "label": 0, "id": "r0"},
        {"text": texts[1], "label": 0, "id": "again"},
        {"text": None, "label": 1, "id": "null"},
        {"text": " ", "label": 0, "id": "r3"},
    ]
    result = detect(rows, "loss,zlib,loss")
    assert list(result.notes[:5]) == [
        "loss (-) is named 2 times, and scored once",
        "2 texts are empty or null.",
        "2 rows have the text of an earlier row, and count as one group with it.",
        "1 texts are on both sides: no score can separate them.",
        "1 rows have the id of an earlier row with another text; each counts.",
    ]
    unscored = [row for row in scores_of(result.scores, "loss") if row["reason"] is not None]
    assert [row["row"] for row in unscored] == [10, 11]


def test_a_repeated_text_is_not_a_second_observation(tiny_model_path):
    """All rows twice give no more information than once."""
    texts = make_texts(40, words=9)
    labels = [at % 2 == 0 for at in range(40)]
    once = spikein.score_texts(tiny_model_path, texts, detectors="loss", labels=labels)
    twice = spikein.score_texts(tiny_model_path, texts * 2, detectors="loss", labels=labels * 2)
    single, double = (scored.aucs.to_pylist()[0] for scored in (once, twice))
    assert double["auc"] == single["auc"]
    assert double["high"] - double["low"] > 0.95 * (single["high"] - single["low"])


def test_the_suffix_selects_the_format(detect, tmp_path):
    texts = ['the river, the "town"', "", "the bridge\nof winter"]
    rows = [{"text": text, "id": text} for text in texts]
    for suffix in (".parquet", ".CSV", ".jsonl"):
        out = tmp_path / f"scores{suffix}"
        expected = detect(rows, "loss,zlib", out=out).scores.to_pylist()
        if suffix == ".parquet":
            written = pq.read_table(out).to_pylist()
        elif suffix == ".jsonl":
            written = [json.loads(line) for line in out.read_text().splitlines()]
        else:
            with out.open(newline="") as file:
                written = list(csv.DictReader(file))
        for name in ("example_id", "setting"):
            assert [row[name] for row in written] == [row[name] for row in expected]
        for row, expected_row in zip(written, expected, strict=True):
            if math.isnan(expected_row["score"]):
                assert row["score"] in (None, "") or math.isnan(row["score"])
                assert row["reason"] == "empty text"
            else:
                assert float(row["score"]) == expected_row["score"]


def test_benchmarks_come_with_blind_and_a_warning(detect):
    texts = (text.split()[:32] for text in make_texts(24, seed=9, words=37))
    rows = [{"input": " ".join(text), "label": at % 2} for at, text in enumerate(texts)]
    result = detect(rows, benchmark="wikimia-32")
    assert {row["detector"] for row in result.scores.to_pylist()} == {"loss", "blind"}
    assert "Compare every AUC with that of `blind`" in result.notes[0]


@pytest.mark.data
def test_wikimia_is_scored_and_the_blind_classifier_finds_its_shift(detect, data_folder):
    file = str(data_folder / "detect/wikimia/WikiMIA_length64.jsonl")
    result = detect(file, "loss,min_k,blind")
    labels = np.array(result.rows.labels)
    assert len(labels) == 542
    blind = np.array([row["score"] for row in scores_of(result.scores, "blind")])
    assert np.mean(blind[labels][:, None] > blind[~labels][None, :]) > 0.8
    assert not np.isnan([row["score"] for row in scores_of(result.scores, "min_k")]).any()
