"""Replies are cached: a rerun repeats no request, whatever ended the previous run."""

import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.server.client import RequestCost
from inject.server.reply_cache import Reply, ReplyCache, TextTokens
from inject.server.request import Server, TextRequest
from tests.inject.server.clients import asked, client
from tests.processes import started
from tests.stub_server import echo, prompt_of, refused, stub_server, text


def test_rerun_sends_no_request_and_replies_before_an_error_are_kept(tmp_path):
    cache = tmp_path / "replies.sqlite"

    def behaviour(number, body):
        return refused(400, "no") if prompt_of(body) == "bad" else echo(number, body)

    with stub_server(behaviour) as stub:
        with client(stub.url, cache, concurrency=1) as remote:
            with pytest.raises(InputError, match="400"):
                remote.ask(asked("a", "b", "bad", "c"))
            assert len(stub.received) == 3
        with client(stub.url, cache) as remote:
            estimate = remote.estimate(asked("a", "b", "c", "c"))
            assert (estimate.requests, estimate.kept, estimate.tokens_out) == (3, 2, 5)
            replies = remote.ask(asked("a", "b", "c"))
            assert [reply.text for reply in replies] == ["said a 7", "said b 7", "said c 7"]
            assert remote.cost._replace(tokens_in=0, tokens_out=0) == RequestCost(asked=1, kept=2)
        assert len(stub.received) == 4
    with client(stub.url, cache) as remote:  # the server is gone
        assert remote.ask(asked("a", "b", "c")) == replies
        assert remote.cost == RequestCost(kept=3)


def test_request_digest_covers_exactly_the_request_content():
    server = Server(base_url="http://host/v1", model="m")
    request = TextRequest(prompt="p", max_tokens=5, seed=7)
    sent = {
        "prompt": "q", "max_tokens": 6, "temperature": 0.5, "top_p": 0.5, "top_k": 3,
        "stop": ("x",), "seed": 8, "sample": 1, "top_log_probabilities": 2,
        "echo": True, "ranks": True,
    }  # fmt: skip
    whom = {"model": "n", "api": "chat", "base_url": "http://other/v1"}
    names = {request.name(server)}
    names |= {replace(request, **{field: value}).name(server) for field, value in sent.items()}
    names |= {request.name(replace(server, **{field: value})) for field, value in whom.items()}
    assert len(names) == 1 + len(sent) + len(whom)
    how = {"concurrency": 2, "timeout": 3, "retries": 4, "api_key_variable": "MY_KEY"}
    assert request.name(replace(server, **how)) == request.name(server)


def test_other_model_name_and_uncounted_tokens_are_reported(tmp_path):
    with stub_server(lambda number, body: text("x", model="other", usage={})) as stub:
        for _ in range(2):
            with client(stub.url, tmp_path / "r") as remote:
                remote.ask(asked("p"))
                named, *further = remote.notes()
                assert "'m', but the server answered as 'other'" in named
    assert further == []
    uncounted = text("x", model="m@main", usage={})
    with stub_server(lambda number, body: uncounted) as stub, client(stub.url) as remote:
        remote.ask(asked("p"))
        assert remote.notes() == (
            "1 of 1 replies did not report their number of tokens; the count of tokens omits "
            "theirs",
        )


def test_cache_file_is_private_and_omits_prompts_and_headers(tmp_path):
    path = tmp_path / "r"
    with stub_server(lambda number, body: text("x")) as stub, client(stub.url, path) as remote:
        remote.ask(asked("a prompt that is protected"))
    content = path.read_bytes()
    assert b"protected" not in content
    assert b"Bearer" not in content
    assert path.stat().st_mode & 0o077 == 0
    assert sqlite3.connect(path).execute("PRAGMA journal_mode").fetchone() == ("wal",)


PROCESS = """
import sys
from pathlib import Path
from inject.server.request import Server
from inject.server.client import ServerClient
from inject.server.request import TextRequest
url, cache, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
client = ServerClient(Server(base_url=url, model="m", concurrency=4), cache=cache)
asked = [TextRequest(prompt=str(number), max_tokens=5) for number in range(count)]
print("\\n".join(reply.text for reply in client.ask(asked)))
"""


def process(url: str, cache: Path, count: int) -> "subprocess.Popen[str]":
    return started("-c", PROCESS, url, cache, count)


@pytest.mark.slow
def test_processes_share_the_cache_file_and_agree(tmp_path):
    """A server that never repeats a reply: all processes have the first replies."""
    with stub_server(lambda number, body: text(f"answer {number}", after=0.02)) as stub:
        running = [process(stub.url, tmp_path / "r", 40) for _ in range(3)]
        outputs = [child.communicate(timeout=60)[0] for child in running]
    assert [child.returncode for child in running] == [0, 0, 0]
    assert len(outputs[0].split("\n")) == 41
    assert outputs[0] == outputs[1] == outputs[2]


@pytest.mark.slow
def test_killed_run_resumes(tmp_path):
    count, slow = 40, 0.2
    with stub_server(lambda number, body: text(prompt_of(body), after=slow)) as stub:
        running = process(stub.url, tmp_path / "r", count)
        while len(stub.received) < 16:
            assert running.poll() is None
            time.sleep(0.01)
        # What came is kept within a hundredth of a second; the next replies come after `slow`.
        time.sleep(slow / 3)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        time.sleep(2 * slow)
        before = len(stub.received)
        again = process(stub.url, tmp_path / "r", count)
        assert again.communicate(timeout=60)[0].split() == [str(digit) for digit in range(count)]
    # Four were in flight when it was killed; their replies went nowhere.
    assert len(stub.received) - before <= count - (before - 4)


FULL = Reply("a\x00b ü\u2028", "m", 3, None, {"A": -0.5, " B": -1.25})


def test_replies_round_trip_and_the_first_reply_is_kept(tmp_path):
    path = tmp_path / "new" / "r"
    with closing(ReplyCache(path)) as cache:
        assert cache.get(["a"]) == {}
        assert cache.keep({"a": FULL}) == {"a": FULL}
        read = Reply("", tokens=TextTokens([[0, 3]], [-1.5], [7], [2], "f"))
        second = {"a": Reply("another"), "b": Reply(""), "d": read}
        assert cache.keep(second) == {"a": FULL, "b": Reply(""), "d": read}
    with closing(ReplyCache(path)) as cache:
        assert cache.get(["b", "a", "c", "d"]) == {"a": FULL, "b": Reply(""), "d": read}


def test_unusable_cache_file_is_rejected(tmp_path):
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match=r"file of replies cannot be used.*Move it away"):
        ReplyCache(damaged)
    assert damaged.read_bytes() == b"no database" * 100
    other = tmp_path / "other"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE mine (x)")
    with pytest.raises(InputError, match="has version 0, but only 2 can be read"):
        ReplyCache(other)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_bit_flip_in_the_cache_changes_no_reply(tmp_path_factory, data):
    """For any bit: a reply is the cached one, or is requested again with a notice, or
    the file is refused by name."""
    folder = tmp_path_factory.mktemp("replies")
    replies = {f"{number}": FULL._replace(text=f"ü text {number}") for number in range(12)}
    path = folder / "r"
    with closing(ReplyCache(path)) as cache:
        cache.keep(replies)
    content = bytearray(path.read_bytes())
    # Most of the file is unused space.
    used = [at for at, byte in enumerate(content) if byte]
    content[data.draw(st.sampled_from(used))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(bytes(content))
    try:
        with closing(ReplyCache(path)) as cache:
            readable = cache.get(list(replies))
            notes = cache.notes()
            again = cache.keep({name: replies[name] for name in replies if name not in readable})
    except InputError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert str(path) in str(refused)
        return
    assert {**readable, **again} == replies
    assert readable == {name: replies[name] for name in readable}
    assert bool(notes) == bool(cache.damaged)
