"""`spikein detect --server`: refusals before anything is sent, and complete runs."""

import csv
import io
import json
import re

import pytest
from typer.testing import CliRunner

from inject.errors import InputError
from spikein.cli.main import app
from tests.echo_server import words
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


def run(rows, tmp_path, url, *more, code=None):
    target = ["--examples", rows, "--model", "m", "--server", url, "--out", str(tmp_path / "s.csv")]
    cache = [f"server.cache={tmp_path}", "--store", str(tmp_path / "store")]
    done = CliRunner().invoke(app, ["detect", *target, *cache, *more], catch_exceptions=False)
    assert code in (None, done.exit_code), done.output
    return done


def test_all_skips_unsupported_detectors_with_a_note(rows, tmp_path):
    with stub_server() as stub:
        result = run(rows, tmp_path, stub.url)
    assert result.exit_code == 0
    notes = [line for line in result.output.split("\n") if "left out, as they read" in line]
    assert len(notes) >= 2
    skipped = {name for line in notes for name in line.rpartition(": ")[2].split(", ")}
    assert {"loss", "zlib", "min_k", "min_k_plus_plus", "surp", "lira", "reference"} <= skipped
    assert not skipped & {"blind", "samia", "prefix", "cdd", "de_cop"}
    assert "blind" in (tmp_path / "s.csv").read_text()


TEXTS = [
    f"The river {name} rises in {place}, runs past the old mill of {place} and ends in the sea, "
    f"where boats of {name} have carried salt since the days of {place}."
    for name in ("Amble", "Brook", "Cray", "Dart")
    for place in ("Aston", "Barton", "Clayton")
]
MEMBERS = TEXTS[::2]


def remembers(number: int, body: dict) -> Answer:
    """A model that continues members verbatim, picks them among four, and otherwise babbles."""
    prompt = prompt_of(body)
    for passage in MEMBERS:
        if "A. " in prompt and passage in prompt:
            for label in "ABCD":
                if f"{label}. {passage}\n" in prompt:
                    return text(label)
        if passage.startswith(prompt):
            return text(passage[len(prompt) :])
    return text(f"word{number % 7} " * 30 if "A. " not in prompt else "D")


def test_detectors_by_text_find_the_members_that_a_served_model_memorized(tmp_path):
    """A run of `all` prints an estimate before and the cost after; a rerun sends no requests."""
    rows = write(
        tmp_path / "rows.jsonl",
        [
            {
                "text": content,
                "label": int(content in MEMBERS),
                "paraphrases": [
                    f"{content} Thus {word}." for word in ("they say", "it was", "so on")
                ],
            }
            for content in TEXTS
        ],
    )
    table = {}
    with stub_server(remembers) as stub:
        for number in (0, 1):
            result = run(
                rows, tmp_path, stub.url, "--json", "--yes", "server.concurrency=16", code=0
            )
            table[number] = json.loads(result.stdout)
            del table[number]["notes"]  # they include the cost
            if number == 0:
                # Four more test whether it supports `top_k`, lists tokens, and reads texts.
                n_requests = len(stub.received) - 4
                assert f"{n_requests:,} requests, of which 0 were answered before" in result.stderr
                spent = f"{n_requests + 2:,} requests: {3 * (n_requests + 2):,} tokens in"
                assert f"the server answered {spent}" in result.stderr
                scores = (tmp_path / "s.csv").read_text()
        assert len(stub.received) == n_requests + 4
        assert f"of which {n_requests:,} were answered before; 0 to send" in result.stderr
        assert (tmp_path / "s.csv").read_text() == scores
    assert table[0] == table[1]
    assert stub.most_in_flight > 1
    for name in ("prefix", "samia", "ngram_coverage", "de_cop"):
        members, others = values(scores, name)
        assert min(members) > max(others), name


def values(scores: str, detector: str) -> tuple[list[float], list[float]]:
    """The scores of members and of non-members."""
    side_scores: tuple[list[float], list[float]] = ([], [])
    for row in csv.DictReader(io.StringIO(scores)):
        if row["detector"] == detector:
            side_scores[TEXTS[int(row["row"])] not in MEMBERS].append(float(row["score"]))
    return side_scores


def test_many_requests_need_confirmation(tmp_path, monkeypatch):
    """Off a terminal they are refused with a remedy; at a terminal a question is asked."""
    labelled = [{"text": text, "label": at % 2} for at, text in enumerate(TEXTS)]
    rows = write(tmp_path / "rows.jsonl", labelled)
    few = ("--detectors", "prefix,samia", "server.confirm_above=131")
    price = "server.price_per_million={tokens_in: 0, tokens_out: 1_000_000}"
    with stub_server() as stub:
        dry = run(rows, tmp_path, stub.url, *few, price, "--dry-run", code=0)
        assert "samia 120; prefix 12" in dry.output
        assert re.search(r"most ([\d,]+) out, so \1\.00 at most by price_per_million", dry.output)
        assert "12 rows (6 members), 2 detectors; 3 of 4 steps to do" in dry.output
        steps = json.loads(run(rows, tmp_path, stub.url, *few, "--dry-run", "--json").stdout)
        counts = [step["requests"]["requests"] for step in steps["steps"] if step["requests"]]
        assert sorted(counts) == [12, 120]
        refused = run(rows, tmp_path, stub.url, *few, code=2)
        for part in ("132 requests would be sent, more than 131", "prefix 12", "--yes", "--limit"):
            assert part in refused.output
        with monkeypatch.context() as patched:
            patched.setattr("spikein.cli.output.at_terminal", lambda: True)
            words = ["detect", "--model", "m", "--server", stub.url, "--examples", rows, *few]
            words += ["--out", str(tmp_path / "s.csv"), "--store", str(tmp_path / "store")]
            declined = CliRunner().invoke(app, [*words, f"server.cache={tmp_path}"], input="n\n")
        assert declined.exit_code == 0
        assert "Send 132 requests?" in declined.output
        assert "Nothing was sent." in declined.output
        assert all(body["max_tokens"] == 1 for body in stub.received), "no text of the rows is sent"
        assert not (tmp_path / "s.csv").exists()
        run(rows, tmp_path, stub.url, *few[:2], "server.confirm_above=132", code=0)
        # Answered requests are not sent again.
        again = run(rows, tmp_path, stub.url, *few)
    assert again.exit_code == 0
    assert "0 to send" in again.output


def test_an_unreachable_server_is_named(rows, tmp_path):
    with stub_server() as stub:
        pass
    result = run(rows, tmp_path, stub.url, "--detectors", "prefix", code=2)
    assert f"{stub.url}: the server gave no answer for the model 'm': no connection" in (
        result.output
    )


def test_options_without_influence_are_refused(rows, tmp_path):
    refused = run(rows, tmp_path, "http://127.0.0.1:9/v1", "device=cpu", "long=error", code=2)
    assert "long, device applies only to a model on this machine" in refused.output
    words = ["detect", "--model", "m", "--examples", rows, "server.api=chat"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "server: its address is missing: --server URL" in refused.output


def test_unusable_addresses_and_keys_are_refused(rows, tmp_path, monkeypatch):
    refused = run(rows, tmp_path, "http://me:pass-word@localhost/v1", code=2)
    assert "a user name or password in a URL" in refused.output
    assert "pass-word" not in refused.output
    monkeypatch.delenv("MY_KEY", raising=False)
    refused = run(rows, tmp_path, "http://127.0.0.1:9/v1", "server.api_key_variable=MY_KEY", code=2)
    assert "MY_KEY is not set" in refused.output


def test_protected_texts_are_sent_only_if_their_dataset_is_named(rows, tmp_path):
    """This includes held-out rows with paraphrases, which `de_cop` would send."""
    secret = {"protected": True, "dataset": "gpqa"}
    hidden = [{"text": f"text {row}", "label": row % 2, **secret} for row in range(12)]
    protected = write(tmp_path / "protected.jsonl", hidden)
    held_out = {"text": "held out", **secret}
    plain = write(tmp_path / "plain.jsonl", [held_out])
    with_paraphrases = write(
        tmp_path / "asked.jsonl", [{**held_out, "paraphrases": ["a", "b", "c"]}]
    )
    with stub_server() as stub:
        for arguments in (
            (protected,),
            (protected, "server.send_protected=[other]"),
            (rows, f"held_out={with_paraphrases}"),
        ):
            refused = run(arguments[0], tmp_path, stub.url, *arguments[1:], code=2)
            assert "texts of protected data (gpqa) would be sent to a server" in refused.output
            assert "server.send_protected=[gpqa]" in refused.output
        assert stub.received == []
        assert run(rows, tmp_path, stub.url, f"held_out={plain}").exit_code == 0
        with stub_server(words) as reading:
            refused = run(rows, tmp_path, reading.url, f"held_out={plain}")
            assert "texts of protected data (gpqa) would be sent to a server" in refused.output
            assert "held out" not in str(reading.received)
        assert "held out" not in str(stub.received)
        n_before = len(stub.received)
        run(protected, tmp_path, stub.url, "server.send_protected=[gpqa]", code=0)
        assert len(stub.received) > n_before


def test_texts_in_memory_are_scored_by_a_server(tmp_path):
    import spikein

    options = spikein.ScoringOptions(
        server={"base_url": "http://127.0.0.1:9/v1", "cache": str(tmp_path)},
        store=str(tmp_path / "store"),
    )
    texts, labels = [f"text {row}" for row in range(12)], [0, 1] * 6
    with pytest.raises(InputError, match="surp reads full distribution"):
        spikein.score_texts("m", texts, detectors="surp", labels=labels, options=options)
    scored = spikein.score_texts("m", texts, detectors="blind", labels=labels, options=options)
    assert len(scored.scores) == 12
