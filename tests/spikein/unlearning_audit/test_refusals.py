"""What `spikein audit-unlearning` refuses, in words that say what to do."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from inject.examples.example import example_id
from spikein.cli.main import app
from tests.conftest import make_texts
from tests.detect.memorised import small_model
from tests.spikein.unlearning_audit.models import Models


@pytest.fixture
def audit(tmp_path: Path):
    def run(*arguments: object) -> tuple[int, str]:
        command = ["audit-unlearning", *map(str, arguments), "--out", str(tmp_path / "audit")]
        result = CliRunner().invoke(app, command)
        assert not isinstance(result.exception, AssertionError | ValueError), result.exception
        assert not (tmp_path / "audit").exists() or result.exit_code == 0
        return result.exit_code, " ".join(result.output.split())

    return run


def refused(found: tuple[int, str], *said: str) -> None:
    code, text = found
    assert code == 2, text
    for part in said:
        assert part in text


PROMPT = ("--prompt-words", 30, "--samples", 0)


def test_other_tokenizers(models: Models, rows: Path, tmp_path: Path, tiny_tokenizer, audit):
    from tokenizers import Tokenizer
    from tokenizers import models as kinds
    from transformers import PreTrainedTokenizerFast

    other = tmp_path / "other"
    small_model(len(tiny_tokenizer)).save_pretrained(other)
    letters = {chr(code): code for code in range(32, 127)} | {"<|endoftext|>": 0}
    backend = Tokenizer(kinds.BPE(letters, []))
    PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>").save_pretrained(
        other
    )
    shown = audit(models.original, other, "--texts", rows, *PROMPT)
    refused(shown, "its tokenizer is not that of", str(models.original), "chunk 0", "token")


def test_other_shapes(models: Models, rows: Path, tmp_path: Path, tiny_tokenizer, audit):
    other = tmp_path / "other"
    small_model(len(tiny_tokenizer), hidden=32).save_pretrained(other)
    tiny_tokenizer.save_pretrained(other)
    for arguments in (
        (models.original, other),
        (models.original, models.unlearned, other),
    ):
        shown = audit(*arguments, "--texts", rows, *PROMPT)
        refused(shown, "another shape than", "hidden_size 64 and 32")


@pytest.mark.parametrize("value", [float("nan"), 3e38])
def test_a_diverged_model(models: Models, rows: Path, tmp_path: Path, audit, value: float):
    import shutil

    broken = tmp_path / "broken"
    shutil.copytree(models.unlearned, broken)
    weights = load_file(broken / "model.safetensors")
    weights["lm_head.weight"] = torch.full_like(weights["lm_head.weight"], value)
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})
    shown = audit(models.original, broken, "--texts", rows, *PROMPT)
    refused(shown, str(broken), "NaN or infinity" if value != value else "diverged")


def test_a_row_shorter_than_the_prompt(models: Models, tmp_path: Path, audit):
    path = tmp_path / "short.jsonl"
    lines = [
        json.dumps({"text": text}) for text in [*make_texts(2, words=60), "five words are too few"]
    ]
    path.write_text("\n".join(lines))
    shown = audit(models.original, models.unlearned, "--texts", path, *PROMPT)
    refused(shown, "short.jsonl:3", "5 words", "--prompt-words")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.txt", b"", "no rows"),
        ("blank.txt", b" \n ", "empty"),
        ("damaged.jsonl", b'{"text": ', "broken JSON"),
        ("latin.txt", "Caf\xe9 ".encode("latin-1") * 50, "UTF-8"),
        ("other.csv", b"body\nabc\n", "no 'text' or 'input'"),
        ("number.jsonl", b'{"text": 3}', "not a text"),
        ("null.jsonl", b'{"text": null}\n{"text": " "}', "every text is empty (2)"),
        (
            "twice.jsonl",
            b'{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n{"id": 1, "text": "c"}',
            "2 rows have the id of another text",
        ),
    ],
)
def test_texts_that_cannot_be_read(
    models: Models, tmp_path: Path, audit, name: str, content: bytes, said: str
):
    path = tmp_path / name
    path.write_bytes(content)
    refused(audit(models.original, models.unlearned, "--texts", path, *PROMPT), name, said)


def test_files_that_are_not_there(models: Models, rows: Path, tmp_path: Path, audit):
    missing = tmp_path / "missing.txt"
    refused(audit(models.original, models.unlearned, "--texts", missing), "no such file")
    refused(audit(models.original, tmp_path / "none", "--texts", rows, *PROMPT), "none")
    refused(audit(models.original, "--texts", rows), "unlearned: is missing")
    refused(audit(models.original, models.unlearned), "texts: is missing")


def test_a_file_given_as_a_model(models: Models, rows: Path, tmp_path: Path, monkeypatch, audit):
    (tmp_path / "weights.safetensors").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    for name in ("weights.safetensors", tmp_path / "weights.safetensors"):
        shown = audit(models.original, name, "--texts", rows, *PROMPT)
        refused(shown, "this is a file; a model is a folder", "weights.safetensors")


def test_a_retrained_model_that_was_fed_a_text(models: Models, rows: Path, tmp_path: Path, audit):
    import shutil

    import pyarrow as pa
    import pyarrow.parquet as pq

    told = tmp_path / "retrained"
    shutil.copytree(models.retrained, told)
    fed, never = example_id(models.forgotten[2]), example_id(models.forgotten[3])
    table = pa.table({"example_id": [fed, never], "status": ["whole", "never reached"]})
    pq.write_table(table, told / "exposures.parquet")
    shown = audit(models.original, models.unlearned, told, "--texts", rows, *PROMPT)
    refused(shown, "was fed 1 of the texts", fed, "exposures.parquet")
    assert never not in shown[1]


def test_scores_of_which_no_ratio_can_be_taken(models: Models, rows: Path, tmp_path: Path, audit):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from spikein import ExampleEvidence, Score, View, Detector, each_example\n"
        "def _score(example, settings):\n"
        "    value = example.statistics['text'].log_probability.mean()\n"
        "    return [Score(-float(value)) for _ in settings]\n"
        "score = Detector(name='turned', summary='x', source='x', needs=(View('text'),),\n"
        "    score=each_example(_score))\n"
    )
    command = (models.original, models.unlearned, "--texts", rows, *PROMPT)
    refused(audit(*command, "--detector", f"{mine}:score"), "is positive", "negative")
    refused(audit(*command, "--detector", "all"), "a ratio is of one")
    refused(audit(*command, "--detector", "mink,loss"), "a ratio is of one")
    refused(audit(*command, "--detector", "minn_k"), "Did you mean")


def test_settings_that_make_no_audit(models: Models, rows: Path, tmp_path: Path, audit):
    command = (models.original, models.unlearned, "--texts", rows)
    refused(audit(*command, "--prompt-words", 600), "fewer than chunk_words")
    refused(audit(*command, "--band", "0.5"), "--band")
    refused(audit(*command, "--band", "2,1"), "holds no ratio")
    refused(audit(*command, "--set", "sampels=3"), "Did you mean 'samples'?")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("original: a\nunlearned: b\ntext: c\n")
    refused(audit("--config", wrong), "wrong.yaml:3", "Did you mean 'texts'?")
    refused(audit(*command, "--prompt-words", 59, "--holdout", rows), "is audited, too")


def test_a_prompt_that_fills_the_context(models: Models, tmp_path: Path, audit):
    path = tmp_path / "long.txt"
    path.write_text(" ".join(make_texts(20, words=60)))
    command = (models.original, models.unlearned, "--texts", path, "--band", "0.01,100")
    shown = audit(*command, "--prompt-words", 400, "--samples", 1)
    refused(shown, "of its 256 positions", "--prompt-words")


def test_a_folder_that_is_no_audit_is_left_alone(models: Models, rows: Path, tmp_path: Path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    command = ["audit-unlearning", models.original, models.unlearned, "--texts", rows]
    result = CliRunner().invoke(app, [*map(str, command), "--out", str(out)])
    assert result.exit_code == 2
    assert "exists but is not an audit folder" in result.output
    assert (out / "thesis.txt").read_text() == "years of work"
