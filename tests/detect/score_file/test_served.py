"""`spikein detect --server`: what is refused before anything is sent, and what runs."""

import json

import pytest
from typer.testing import CliRunner

from detect.score_file.labelled_rows import read_labelled
from inject.errors import InputError
from spikein.cli.main import app
from tests.stub_server import stub_server


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def rows(tmp_path):
    return write(
        tmp_path / "rows.jsonl",
        [{"text": f"The river number {row} is wide.", "label": row % 2} for row in range(12)],
    )


def run(rows, tmp_path, url, *more):
    asked = ["--examples", rows, "--model", "m", "--server", url, "--out", str(tmp_path / "s.csv")]
    cache = ["--cache", str(tmp_path / "cache")]
    return CliRunner().invoke(app, ["detect", *asked, *cache, *more], catch_exceptions=False)


def test_a_detector_that_reads_probabilities_is_refused_by_name_with_the_reason(rows, tmp_path):
    with stub_server() as stub:
        found = run(rows, tmp_path, stub.url, "--detectors", "min_k")
    assert found.exit_code == 2
    assert "min_k reads token log-probabilities, and a server shows what its model writes" in (
        found.output
    )
    assert stub.received == []


def test_with_all_such_detectors_are_left_out_with_a_note(rows, tmp_path):
    with stub_server() as stub:
        found = run(rows, tmp_path, stub.url)
    assert found.exit_code == 0
    for name in ("loss", "zlib", "min_k", "min_k_plus_plus", "surp", "lira", "reference"):
        assert f"{name} reads " in found.output
    assert "blind" in (tmp_path / "s.csv").read_text()


@pytest.mark.parametrize(
    "option",
    [
        ("--device", "cpu"), ("--dtype", "float32"), ("--batch-tokens", "64"), ("--revision", "x"),
        ("--trust-remote-code",), ("--long", "error"), ("--bos", "never"),
        ("--score-first", "start_token"),
    ],
)  # fmt: skip
def test_options_of_a_local_model_are_not_ignored_but_refused(rows, tmp_path, option):
    found = run(rows, tmp_path, "http://127.0.0.1:9/v1", *option)
    assert found.exit_code == 2
    assert f"{option[0]} is of use for a model on this machine alone" in found.output


@pytest.mark.parametrize(
    "option",
    [("--api", "chat"), ("--concurrency", "2"), ("--api-key-variable", "K"),
     ("--send-protected", "gpqa")],
)  # fmt: skip
def test_options_of_a_server_need_one(rows, option):
    found = CliRunner().invoke(app, ["detect", "--model", "m", "--examples", rows, *option])
    assert found.exit_code == 2
    assert f"{option[0]} is of use for a server (--server URL) alone" in found.output


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:8000", "no address of a server"),
        ("http://me:pass-word@localhost/v1", "a user name or password in a URL"),
    ],
)
def test_addresses_that_cannot_be_used(rows, tmp_path, url, message):
    found = run(rows, tmp_path, url)
    assert found.exit_code == 2
    assert message in found.output
    assert "pass-word" not in found.output


def test_a_key_that_is_not_there(rows, tmp_path, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    found = run(rows, tmp_path, "http://127.0.0.1:9/v1", "--api-key-variable", "MY_KEY")
    assert found.exit_code == 2
    assert "MY_KEY is not set" in found.output


PROTECTED = [
    {"text": "one", "protected": True, "dataset": "gpqa"},
    {"text": "one", "Protected": "true", "Dataset": "gpqa"},
    {"text": "one", "protected": 1, "dataset": "gpqa"},
    {"text": "one", "Canary String": "BENCHMARK DATA SHOULD NEVER APPEAR", "dataset": "gpqa"},
]
OPEN = [
    {"text": "one"},
    {"text": "one", "protected": False, "dataset": "gpqa"},
    {"text": "one", "protected": "false"},
    {"text": "one", "protected": None, "canary": ""},
]


@pytest.mark.parametrize("row", PROTECTED)
def test_protected_rows_are_known(row, tmp_path):
    found = read_labelled(write(tmp_path / "mine.jsonl", [{"text": "two"}, row]))
    assert found.protected == ("gpqa",)
    row = {**row, "dataset": "", "Dataset": ""}
    found = read_labelled(write(tmp_path / "mine.jsonl", [row]))
    assert found.protected == ("mine",)


@pytest.mark.parametrize("row", OPEN)
def test_open_rows_are_not_protected(row, tmp_path):
    assert read_labelled(write(tmp_path / "rows.jsonl", [row])).protected == ()


def test_protected_texts_are_sent_only_where_their_dataset_is_named(tmp_path):
    rows = write(
        tmp_path / "rows.jsonl",
        [{"text": f"text {row}", "label": row % 2, "protected": True, "dataset": "gpqa"}
         for row in range(12)],
    )  # fmt: skip
    with stub_server() as stub:
        found = run(rows, tmp_path, stub.url)
        assert found.exit_code == 2
        assert "texts of protected data (gpqa) would be sent to a server" in found.output
        assert "--send-protected gpqa" in found.output
        assert run(rows, tmp_path, stub.url, "--send-protected", "other").exit_code == 2
        assert stub.received == []
        assert run(rows, tmp_path, stub.url, "--send-protected", "gpqa").exit_code == 0


def test_texts_in_memory_are_scored_by_a_server_of_the_same_model(tmp_path):
    import spikein
    from inject.server.address import Server

    options = spikein.ScoringOptions(
        server=Server(base_url="http://127.0.0.1:9/v1", model="m"), cache=tmp_path
    )
    texts, labels = [f"text {row}" for row in range(12)], [0, 1] * 6
    with pytest.raises(InputError, match="asked for the model 'm', and 'n' is scored"):
        spikein.score_texts("n", texts, labels=labels, options=options)
    with pytest.raises(InputError, match="loss reads token log-probabilities"):
        spikein.score_texts("m", texts, detectors="loss", labels=labels, options=options)
    found = spikein.score_texts("m", texts, detectors="blind", labels=labels, options=options)
    assert len(found.scores) == 12
    local = spikein.ScoringOptions(send_protected=("gpqa",))
    with pytest.raises(InputError, match="sent to a server only"):
        spikein.score_texts("m", texts, options=local)


def test_help_has_an_example():
    found = CliRunner().invoke(app, ["detect", "--help"])
    assert "--server http://localhost:8000/v1" in " ".join(found.output.split())
