"""`spikein detect --server`: what is refused before anything is sent, and what runs."""

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from inject.errors import InputError
from spikein.cli.main import app
from tests.stub_server import Answer, prompt_of, stub_server, text


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
    notes = [line for line in found.output.split("\n") if "left out, as they read" in line]
    assert len(notes) >= 2
    left_out = {name for line in notes for name in line.rpartition(": ")[2].split(", ")}
    assert {"loss", "zlib", "min_k", "min_k_plus_plus", "surp", "lira", "reference"} <= left_out
    assert not left_out & {"blind", "samia", "prefix", "cdd", "de_cop"}
    assert "blind" in (tmp_path / "s.csv").read_text()


TEXTS = [
    f"The river {name} rises in {place}, runs past the old mill of {place} and ends in the sea, "
    f"where boats of {name} have carried salt since the days of {place}."
    for name in ("Amble", "Brook", "Cray", "Dart")
    for place in ("Aston", "Barton", "Clayton")
]
MEMBERS = TEXTS[::2]


def remembers(number: int, body: dict) -> Answer:
    """A model that goes on with members word for word, knows them among four, and else babbles."""
    prompt = prompt_of(body)
    for passage in MEMBERS:
        if "A. " in prompt and passage in prompt:
            for label in "ABCD":
                if f"{label}. {passage}\n" in prompt:
                    return text(label)
        if passage.startswith(prompt):
            return text(passage[len(prompt) :])
    return text(f"word{number % 7} " * 30 if "A. " not in prompt else "D")


def test_detectors_by_text_find_what_a_served_model_remembers(tmp_path):
    """In one run of `all`: the estimate comes before, the cost after, and a rerun asks nothing."""
    rows = write(
        tmp_path / "rows.jsonl",
        [
            {
                "text": one,
                "label": int(one in MEMBERS),
                "paraphrases": [f"{one} Thus {word}." for word in ("they say", "it was", "so on")],
            }
            for one in TEXTS
        ],
    )
    table = {}
    with stub_server(remembers) as stub:
        for number in (0, 1):
            found = run(rows, tmp_path, stub.url, "--json", "--concurrency", "16")
            assert found.exit_code == 0, found.output
            table[number] = json.loads(found.stdout)
            del table[number]["notes"]  # what it cost this time
            if number == 0:
                # Two more found out whether it takes `top_k`, and lists tokens.
                asked = len(stub.received) - 2
                assert f"{asked:,} requests, of which 0 were answered before" in found.stderr
                spent = f"{asked + 2:,} requests: {3 * (asked + 2):,} tokens in"
                assert f"the server answered {spent}" in found.stderr
                scores = (tmp_path / "s.csv").read_text()
        assert len(stub.received) == asked + 2
        assert f"of which {asked:,} were answered before; 0 to send" in found.stderr
        assert (tmp_path / "s.csv").read_text() == scores
    assert table[0] == table[1]
    assert stub.most_in_flight > 1
    for name in ("prefix", "samia", "ngram_coverage", "de_cop"):
        members, others = values(scores, name)
        assert min(members) > max(others), name


def values(scores: str, detector: str) -> tuple[list[float], list[float]]:
    """The scores of members, and of the others."""
    found: tuple[list[float], list[float]] = ([], [])
    for row in csv.DictReader(io.StringIO(scores)):
        if row["detector"] == detector:
            found[TEXTS[int(row["row"])] not in MEMBERS].append(float(row["score"]))
    return found


def test_a_server_that_is_gone_is_named_and_what_came_is_kept(rows, tmp_path):
    with stub_server() as stub:
        pass
    found = run(rows, tmp_path, stub.url, "--detectors", "prefix")
    assert found.exit_code == 2
    assert f"{stub.url}: the server gave no answer for the model 'm': no connection" in (
        found.output
    )


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
        ("localhost:8000", "is not the address of a server"),
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


def test_protected_held_out_rows_that_would_be_asked_about_are_not_sent_either(tmp_path):
    """Held-out rows with paraphrases calibrate `de_cop`, for which a server would read them."""
    rows = write(tmp_path / "rows.jsonl", [{"text": f"text {row}"} for row in range(4)])
    held_out = {"text": "held out", "protected": True, "dataset": "gpqa"}
    plain = write(tmp_path / "plain.jsonl", [held_out])
    asked = write(tmp_path / "asked.jsonl", [{**held_out, "paraphrases": ["a", "b", "c"]}])
    with stub_server() as stub:
        found = run(rows, tmp_path, stub.url, "--held-out", asked)
        assert found.exit_code == 2
        assert "texts of protected data (gpqa) would be sent to a server" in found.output
        assert stub.received == []
        assert run(rows, tmp_path, stub.url, "--held-out", plain).exit_code == 0
        sent = str(stub.received)
        assert "held out" not in sent


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
