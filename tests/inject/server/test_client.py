"""The client against a misbehaving server: retries, errors, and cached replies."""

import socket
import time
import traceback

import pytest

from inject.errors import InputError
from inject.server.client import RequestCost
from inject.server.request import Server, TextRequest
from tests.inject.server.clients import asked, client
from tests.stub_server import Answer, prompt_of, refused, stub_server, text


@pytest.mark.parametrize(
    ("api", "path"), [("completions", "/v1/completions"), ("chat", "/v1/chat/completions")]
)
def test_request_contains_all_settings(monkeypatch, api, path):
    monkeypatch.setenv("MY_KEY", "secret-key")
    request = TextRequest(
        prompt="Please.", max_tokens=9, temperature=0.3, top_p=0.9, top_k=4, stop=("\n",), seed=5
    )
    with stub_server() as stub, client(stub.url, api=api, api_key_variable="MY_KEY") as remote:
        assert remote.ask([request])[0].text == "said Please. 5"
        assert remote.cost == RequestCost(asked=1, tokens_in=3, tokens_out=2)
    [sent] = stub.received
    assert (sent["path"], sent["key"]) == (path, "Bearer secret-key")
    assert {"model": "m", "max_tokens": 9, "temperature": 0.3, "seed": 5}.items() <= sent.items()
    assert (sent["top_p"], sent["top_k"], sent["stop"]) == (0.9, 4, ["\n"])
    assert prompt_of(sent) == "Please."


def test_replies_keep_their_order_and_equal_requests_are_sent_once():
    seen: list[tuple[int, int]] = []

    def behaviour(number, body):
        return text(f"to {prompt_of(body)}", after=0.05 if prompt_of(body) == "p0" else 0.0)

    prompts = [f"p{number % 5}" for number in range(12)]
    with stub_server(behaviour) as stub, client(stub.url) as remote:
        replies = remote.ask(
            asked(*prompts), progress=lambda done, total: seen.append((done, total))
        )
    assert [reply.text for reply in replies] == [f"to {prompt}" for prompt in prompts]
    assert len(stub.received) == 5
    assert seen[0] == (0, 12)
    assert seen[-1] == (12, 12)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_no_more_requests_are_in_flight_than_allowed():
    with (
        stub_server(lambda number, body: text("x", after=0.05)) as stub,
        client(stub.url, concurrency=3) as remote,
    ):
        remote.ask(asked(*map(str, range(9))))
    assert stub.most_in_flight == 3


SOON = {"retry-after-ms": "10"}


@pytest.mark.parametrize("status", [429, 503])
def test_transient_error_is_retried(status):
    def behaviour(number, body):
        return refused(status, headers=SOON) if number == 0 else text("fine")

    with stub_server(behaviour) as stub, client(stub.url) as remote:
        assert remote.ask(asked("p"))[0].text == "fine"
    assert len(stub.received) == 2


def test_rate_limit_delay_is_respected():
    def behaviour(number, body):
        return refused(429, headers={"Retry-After": "1"}) if number == 0 else text("x")

    with stub_server(behaviour) as stub, client(stub.url) as remote:
        remote.ask(asked("a"))
    first, second = (sent["time"] for sent in stub.received)
    assert second - first >= 0.99


LASTING = {
    "500": (refused(500, "a hiccup", headers=SOON), "500: .*a hiccup.*its own log", 2),
    "429": (refused(429, "slow down", headers=SOON), "429: .*slow down.*Lower the concurrency", 2),
    "too late": (text("late", after=1.2), "no reply within 1 seconds", 2),
    "an error of status 200": (Answer(content=b'{"error": "overloaded"}'), ": overloaded", 1),
    "null text": (
        Answer(content=b'{"choices": [{"text": null, "finish_reason": "content_filter"}]}'),
        r"no text \(finish reason: content_filter\)",
        1,
    ),
    "400": (refused(400, "unknown parameter top_k"), "400: .*remove that setting", 1),
    "template": (
        refused(500, "no chat_template is set", headers=SOON),
        "chat_template.*needs `completions`",
        2,
    ),
}


@pytest.mark.parametrize(("answer", "message", "tries"), LASTING.values(), ids=LASTING)
def test_permanent_error_is_raised_with_its_reason(answer, message, tries):
    with (
        stub_server(lambda number, body: answer) as stub,
        client(stub.url) as remote,
        pytest.raises(InputError, match=message) as caught,
    ):
        remote.ask(asked("p"))
    assert caught.value.where == stub.url
    assert len(stub.received) == tries


def test_refused_connection_fails_immediately():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    started = time.monotonic()
    with (
        client(url, retries=50) as remote,
        pytest.raises(InputError, match=r"no connection \(.*Check that it runs"),
    ):
        remote.ask(asked("p", "q"))
    assert time.monotonic() - started < 5


KEY = "secret-key"


def test_error_reply_that_repeats_the_key_is_masked(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    reply = f"{KEY} got {KEY}! Bearer {KEY} ?api_key={KEY}"
    with (
        stub_server(lambda number, body: refused(401, reply)) as stub,
        client(stub.url, api_key_variable="MY_KEY") as remote,
        pytest.raises(InputError, match="401") as caught,
    ):
        remote.ask(asked("p"))
    assert stub.received[0]["key"] == f"Bearer {KEY}"
    trace = "".join(traceback.format_exception(caught.value))
    assert KEY not in trace
    assert "***" in trace


def test_cached_reply_that_repeats_the_key_is_masked(monkeypatch, tmp_path):
    monkeypatch.setenv("MY_KEY", KEY)
    with (
        stub_server(lambda number, body: text(f"I know {KEY}.", model=f"m {KEY}")) as stub,
        client(stub.url, tmp_path / "r", api_key_variable="MY_KEY") as remote,
    ):
        [reply] = remote.ask(asked("p"))
        assert (reply.text, reply.model) == ("I know ***.", "m ***")
        assert remote.ask(asked("p")) == [reply]
        assert not any(KEY in note for note in remote.notes())
        files = list(tmp_path.iterdir())
        assert len(files) > 1  # the write-ahead log is next to it
        assert not any(KEY.encode() in file.read_bytes() for file in files)


GOOD = {"base_url": "http://localhost:8000/v1", "model": "m"}


@pytest.mark.parametrize(
    ("change", "message", "secret"),
    [
        ({"base_url": "localhost:8000"}, "not the address of a server", None),
        ({"base_url": "http://me:pass-word@host/v1"}, "the address contains", "pass-word"),
        ({"api_key_variable": "sk-proj-AbCdEf123456GhIjKl"}, "not the name of an env", "AbCdEf"),
    ],
)
def test_invalid_server_setting_is_rejected_without_showing_the_key(change, message, secret):
    with pytest.raises(InputError, match=message) as caught:
        Server(**{**GOOD, **change})
    assert secret is None or secret not in str(caught.value)


def test_key_comes_only_from_the_environment(monkeypatch):
    assert Server(**GOOD).key() == "none"
    named = Server(**GOOD, api_key_variable="MY_KEY")
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(InputError, match="MY_KEY is not set"):
        named.key()
    monkeypatch.setenv("MY_KEY", "secret-key")
    assert named.key() == "secret-key"
    assert "secret-key" not in repr(named)
