"""Refusals of `spikein audit-unlearning`, each with a remedy."""

import shutil
from pathlib import Path

import pytest

from inject.examples.example import example_id
from tests.spikein.unlearning_audit.conftest import invoke, write_rows

PROMPT = ("prompt_words=30", "samples=0")


@pytest.fixture
def check_refused(judged, rows: Path, store: Path, tmp_path: Path):
    def run(*arguments: object, models=None, texts: Path | None = rows, messages=()) -> None:
        pair = (judged.original, judged.unlearned["forgot"])
        command = [*(pair if models is None else models), *arguments, "--store", store]
        command += [] if texts is None else ["--texts", texts]
        result = invoke(*command, "--out", tmp_path / "audit")
        output = " ".join(result.output.split())
        assert result.exit_code == 2, output
        assert not (tmp_path / "audit").exists()
        for part in messages:
            assert part in output

    return run


def test_other_tokenizers_and_shapes_are_refused(judged, tmp_path, tiny_tokenizer, check_refused):
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
    messages = ["its tokenizer is not that of", str(judged.original), "chunk 0", "token"]
    check_refused(*PROMPT, models=(judged.original, other), messages=messages)
    small = tmp_path / "small"
    small_model(len(tiny_tokenizer), hidden=32).save_pretrained(small)
    tiny_tokenizer.save_pretrained(small)
    messages = ["another shape than", "hidden_size 64 and 32"]
    check_refused(*PROMPT, models=(judged.original, small), messages=messages)
    models = (judged.original, judged.unlearned["forgot"], small)
    check_refused(*PROMPT, models=models, messages=messages)


def test_a_diverged_model_is_refused(judged, tmp_path, check_refused):
    import torch
    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    shutil.copytree(judged.unlearned["forgot"], broken)
    weights = load_file(broken / "model.safetensors")
    weights["lm_head.weight"] = torch.full_like(weights["lm_head.weight"], 3e38)
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    check_refused(
        "prompt_words=30", "samples=1", models=(judged.original, broken), messages=["diverged"]
    )


def test_unreadable_texts_are_refused(tmp_path, check_refused):
    for name, content, message in (
        ("blank.txt", b" \n ", "empty"),
        ("latin.txt", "Caf\xe9 ".encode("latin-1") * 50, "UTF-8"),
        ("other.csv", b"body\nabc\n", "no 'text' or 'input'"),
        ("short.jsonl", b'{"text": "five words are too few"}', "5 words"),
        ("twice.jsonl", b'{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}', "1 rows have the id"),
    ):
        (tmp_path / name).write_bytes(content)
        check_refused(*PROMPT, texts=tmp_path / name, messages=[name, message])


def test_missing_inputs_are_named(judged, tmp_path, check_refused):
    check_refused(texts=tmp_path / "missing.txt", messages=["no such file"])
    check_refused(*PROMPT, models=(judged.original, tmp_path / "none"), messages=["none"])
    check_refused(models=(judged.original,), messages=["unlearned: is missing"])
    check_refused(texts=None, messages=["texts: is missing"])


def test_a_retrained_model_trained_on_a_text_is_refused(judged, tmp_path, check_refused):
    import pyarrow as pa
    import pyarrow.parquet as pq

    contaminated = tmp_path / "retrained"
    shutil.copytree(judged.retrained, contaminated)
    exposed, unexposed = example_id(judged.texts[2]), example_id(judged.texts[3])
    table = pa.table({"example_id": [exposed, unexposed], "status": ["whole", "never reached"]})
    pq.write_table(table, contaminated / "exposures.parquet")
    models = (judged.original, judged.unlearned["forgot"], contaminated)
    check_refused(
        *PROMPT,
        models=models,
        messages=["was trained on 1 of the texts", exposed, "exposures.parquet"],
    )


def test_scores_without_a_ratio_are_refused(tmp_path, check_refused):
    path = tmp_path / "mine.py"
    path.write_text(
        "from spikein import ExampleEvidence, Score, View, Detector, each_example\n"
        "def _score(example, settings):\n"
        "    value = example.statistics['text'].log_probability.mean()\n"
        "    return [Score(-float(value)) for _ in settings]\n"
        "score = Detector(name='turned', summary='x', source='x', needs=(View('text'),),\n"
        "    score=each_example(_score))\n"
    )
    options = ("prompt_words=30", "samples=1")
    check_refused(*options, f"detector={path}:score", messages=["is positive", "negative"])
    for several in ("all", "'mink,loss'"):
        check_refused(*PROMPT, f"detector={several}")
    check_refused(*PROMPT, "detector=dc_pdd", messages=["dc_pdd"])


def test_invalid_settings_are_refused(judged, rows, tmp_path, check_refused):
    check_refused("prompt_words=600", messages=["fewer than chunk_words"])
    check_refused("sampels=3", messages=["Did you mean 'samples'?"])
    check_refused(models=("a", "b", "c", "d"), messages=["a fourth model"])
    check_refused("prompt_words=59", "--control-texts", rows, messages=["is also audited"])
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("original: a\nunlearned: b\ntext: c\n")
    messages = ["wrong.yaml:3", "Did you mean 'texts'?"]
    check_refused("--config", wrong, models=(), texts=None, messages=messages)
    long = write_rows(tmp_path / "long.jsonl", [" ".join(judged.texts)])
    messages = ["of its 256 positions", "prompt_words"]
    check_refused(
        "prompt_words=400", "samples=1", "band=[0.01, 100]", texts=long, messages=messages
    )


def test_a_folder_that_is_not_an_audit_stays_unchanged(judged, rows, tmp_path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    result = invoke(
        judged.original, judged.unlearned["forgot"], "--texts", rows, "--out", out, code=2
    )
    assert "exists but is not an audit folder" in result.output
    assert (out / "thesis.txt").read_text() == "years of work"
