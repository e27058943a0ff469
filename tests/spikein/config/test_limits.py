"""`plan` and `check` refuse impossible experiments quickly, with a message and exit code 2."""

import json
import time

import pytest
from typer.testing import CliRunner

from spikein.cli.main import app
from spikein.config.yaml_document import parse_document
from tests.spikein.tiny import write_tiny

TOO_MUCH = {
    "a vocabulary of 10^9": ("model.tokenizer.vocab_size=1000000000", "Allowed: 1048576 or less"),
    "a vocabulary of 1": ("model.tokenizer.vocab_size=1", "Allowed: 257 or more"),
    "10^8 members": ("contaminants.0.members=100000000", "contaminants.0.members"),
    "10^9 copies": ("copies={fixed: 1000000000}", "copies.fixed"),
    "copies that cannot fit": ("copies={fixed: 400}", "have room for 40,000"),
    "copies that cannot fit their span": (
        "copies={fixed: 400}; placement.between=[0.5, 1]",
        "have room for 20,000",
    ),
    "long copies that cannot fit": ("copies={fixed: 60}", "have room for 40,000"),
    "11,000 arms": (
        f"seeds={list(range(1000))}; sweep={{train.lr: {list(range(1, 12))}}}",
        "seeds: 11,000 arms",
    ),
    "a seed beyond the generators": ("base.seed=1000000000000000000000", "base.seed"),
    "no row left to report on": ("detect.tune_share=1", "detect.tune_share"),
    "a number of 5,000 digits": ("corpus.tokens=" + "9" * 5000, "5,000 digits is too large"),
}


def invoke(command, folder, *arguments):
    """Return exit code and output of one command; fails if it takes long."""
    started = time.process_time()
    result = CliRunner().invoke(
        app, [command, str(folder / "tiny.yaml"), *arguments, "--store", str(folder / "store")]
    )
    # The time of this process does not depend on how busy the machine is.
    assert time.process_time() - started < 30
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, " ".join(result.output.split())


def test_excessive_settings_are_refused_before_any_work(tmp_path):
    write_tiny(tmp_path)
    for case, (override, message) in TOO_MUCH.items():
        for command in ("check", *(["plan"] if case == "10^9 copies" else [])):
            code, output = invoke(command, tmp_path, *override.split("; "))
            assert code == 2, case
            assert message in output, case
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("command", ["plan", "check"])
def test_insufficient_rows_are_refused_before_any_work(tmp_path, command):
    write_tiny(tmp_path)
    path = tmp_path / "rows.jsonl"
    for row, more, message in (
        ({"q": "x"}, ", fields: {question: q.stem, answer: gold}", "q.stem"),
        (
            {"question": "x", "gold": "y"},
            ", fields: {question: question, answer: golden}",
            "golden",
        ),
        ({"text": "one of a kind"}, "", "the dataset has 1"),
    ):
        path.write_text(json.dumps(row) + "\n")
        more += ', template: "{question} {answer}"' if more else ""
        rows = f'{{dataset: rows, name: mine, path: "{path}", members: 1, nonmembers: 1{more}}}'
        code, output = invoke(command, tmp_path, f"contaminants=[{rows}]")
        assert code == 2
        assert message in output


def test_many_generated_members_are_planned_without_making_them(tmp_path):
    write_tiny(tmp_path)
    code, output = invoke(
        "plan",
        tmp_path,
        "contaminants.0.members=900000",
        "contaminants.0.nonmembers=900000",
        "corpus.tokens=2000000000",
    )
    assert code == 0
    assert "900,000" in output


BOMB = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)
EXHAUSTING = {
    BOMB: "more than 100,000 values, aliases written out",
    "a: " + "[" * 3000 + "]" * 3000: "nested too deeply",
    "".join(" " * level + "a:\n" for level in range(3000)): "nested too deeply",
    "name: " + "x" * (9 << 20): "at most 8 MiB",
}


def test_files_made_to_exhaust_the_reader_are_refused_and_long_ones_are_read(tmp_path):
    for text, message in EXHAUSTING.items():
        (tmp_path / "tiny.yaml").write_text(text)
        code, output = invoke("check", tmp_path)
        assert code == 2
        assert message in output
    assert len(parse_document(f"a: {list(range(10_000))}", name="x").values["a"]) == 10_000
