"""What `spikein audit-unlearning` refuses, in words that say what to do."""

import shutil
from pathlib import Path

import pytest

from inject.examples.example import example_id
from tests.spikein.unlearning_audit.conftest import invoke, write_rows

PROMPT = ("prompt_words=30", "samples=0")


@pytest.fixture
def refused(judged, rows: Path, store: Path, tmp_path: Path):
    def run(*arguments: object, models=None, texts: Path | None = rows, said=()) -> None:
        pair = (judged.original, judged.unlearned["forgot"])
        command = [*(pair if models is None else models), *arguments, "--store", store]
        command += [] if texts is None else ["--texts", texts]
        result = invoke(*command, "--out", tmp_path / "audit")
        output = " ".join(result.output.split())
        assert result.exit_code == 2, output
        assert not (tmp_path / "audit").exists()
        for part in said:
            assert part in output

    return run


def test_other_tokenizers_and_shapes(judged, tmp_path, tiny_tokenizer, refused):
    from tokenizers import Tokenizer
    from tokenizers import models as kinds
    from transformers import PreTrainedTokenizerFast

    from tests.detect.memorised import small_model

    other = tmp_path / "other"
    small_model(len(tiny_tokenizer)).save_pretrained(other)
    letters = {chr(code): code for code in range(32, 127)} | {"<|endoftext|>": 0}
    backend = Tokenizer(kinds.BPE(letters, []))
    letter = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>")
    letter.save_pretrained(other)
    said = ["its tokenizer is not that of", str(judged.original), "chunk 0", "token"]
    refused(*PROMPT, models=(judged.original, other), said=said)
    small = tmp_path / "small"
    small_model(len(tiny_tokenizer), hidden=32).save_pretrained(small)
    tiny_tokenizer.save_pretrained(small)
    said = ["another shape than", "hidden_size 64 and 32"]
    refused(*PROMPT, models=(judged.original, small), said=said)
    models = (judged.original, judged.unlearned["forgot"], small)
    refused(*PROMPT, models=models, said=said)


def test_a_diverged_model(judged, tmp_path, refused):
    import torch
    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    shutil.copytree(judged.unlearned["forgot"], broken)
    weights = load_file(broken / "model.safetensors")
    weights["lm_head.weight"] = torch.full_like(weights["lm_head.weight"], 3e38)
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    refused("prompt_words=30", "samples=1", models=(judged.original, broken), said=["diverged"])


def test_texts_that_cannot_be_read(tmp_path, refused):
    for name, content, said in (
        ("blank.txt", b" \n ", "empty"),
        ("latin.txt", "Caf\xe9 ".encode("latin-1") * 50, "UTF-8"),
        ("other.csv", b"body\nabc\n", "no 'text' or 'input'"),
        ("short.jsonl", b'{"text": "five words are too few"}', "5 words"),
        ("twice.jsonl", b'{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}', "1 rows have the id"),
    ):
        (tmp_path / name).write_bytes(content)
        refused(*PROMPT, texts=tmp_path / name, said=[name, said])


def test_what_is_missing_is_named(judged, tmp_path, refused):
    refused(texts=tmp_path / "missing.txt", said=["no such file"])
    refused(*PROMPT, models=(judged.original, tmp_path / "none"), said=["none"])
    refused(models=(judged.original,), said=["unlearned: is missing"])
    refused(texts=None, said=["texts: is missing"])


def test_a_retrained_model_that_was_fed_a_text(judged, tmp_path, refused):
    import pyarrow as pa
    import pyarrow.parquet as pq

    told = tmp_path / "retrained"
    shutil.copytree(judged.retrained, told)
    fed, never = example_id(judged.texts[2]), example_id(judged.texts[3])
    table = pa.table({"example_id": [fed, never], "status": ["whole", "never reached"]})
    pq.write_table(table, told / "exposures.parquet")
    models = (judged.original, judged.unlearned["forgot"], told)
    refused(
        *PROMPT, models=models, said=["was trained on 1 of the texts", fed, "exposures.parquet"]
    )


def test_scores_of_which_no_ratio_can_be_taken(tmp_path, refused):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from spikein import ExampleEvidence, Score, View, Detector, each_example\n"
        "def _score(example, settings):\n"
        "    value = example.statistics['text'].log_probability.mean()\n"
        "    return [Score(-float(value)) for _ in settings]\n"
        "score = Detector(name='turned', summary='x', source='x', needs=(View('text'),),\n"
        "    score=each_example(_score))\n"
    )
    options = ("prompt_words=30", "samples=1")
    refused(*options, f"detector={mine}:score", said=["is positive", "negative"])
    for several in ("all", "'mink,loss'"):
        refused(*PROMPT, f"detector={several}")
    refused(*PROMPT, "detector=dc_pdd", said=["dc_pdd"])


def test_settings_that_make_no_audit(judged, rows, tmp_path, refused):
    refused("prompt_words=600", said=["fewer than chunk_words"])
    refused("sampels=3", said=["Did you mean 'samples'?"])
    refused(models=("a", "b", "c", "d"), said=["a fourth model"])
    refused("prompt_words=59", "--control-texts", rows, said=["is also audited"])
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("original: a\nunlearned: b\ntext: c\n")
    said = ["wrong.yaml:3", "Did you mean 'texts'?"]
    refused("--config", wrong, models=(), texts=None, said=said)
    long = write_rows(tmp_path / "long.jsonl", [" ".join(judged.texts)])
    said = ["of its 256 positions", "prompt_words"]
    refused("prompt_words=400", "samples=1", "band=[0.01, 100]", texts=long, said=said)


def test_a_folder_that_is_no_audit_is_left_alone(judged, rows, tmp_path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    result = invoke(
        judged.original, judged.unlearned["forgot"], "--texts", rows, "--out", out, code=2
    )
    assert "exists but is not an audit folder" in result.output
    assert (out / "thesis.txt").read_text() == "years of work"
