"""The file of replies: what is kept comes back, and a file that cannot be used is named."""

import sqlite3
from contextlib import closing

import pytest

from inject.errors import InputError
from inject.server.reply import Reply
from inject.server.reply_cache import ReplyCache

FULL = Reply("a\x00b ü\u2028", "m", 3, None, {"A": -0.5, " B": -1.25})


def test_what_is_kept_comes_back_whole_and_the_first_stays(tmp_path):
    path = tmp_path / "new" / "r"
    with closing(ReplyCache(path)) as cache:
        assert cache.get(["a"]) == {}
        assert cache.keep({"a": FULL}) == {"a": FULL}
        second = {"a": Reply("another"), "b": Reply("")}
        assert cache.keep(second) == {"a": FULL, "b": Reply("")}
    with closing(ReplyCache(path)) as cache:
        assert cache.get(["b", "a", "c"]) == {"a": FULL, "b": Reply("")}


def test_more_replies_than_one_question_can_name(tmp_path):
    with closing(ReplyCache(tmp_path / "r")) as cache:
        cache.keep({str(number): Reply(f"text {number}") for number in range(1201)})
        found = cache.get([str(number) for number in range(1300)])
        assert len(found) == 1201
        assert found["1200"].text == "text 1200"


def test_a_file_that_cannot_be_used(tmp_path):
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match=r"file of replies cannot be used.*Move it away"):
        ReplyCache(damaged)
    assert damaged.read_bytes() == b"no database" * 100
    other = tmp_path / "other"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE mine (x)")
    with pytest.raises(InputError, match="has version 0, and 1 is read"):
        ReplyCache(other)
    with closing(sqlite3.connect(other)) as database:
        database.execute("PRAGMA user_version = 2")
    with pytest.raises(InputError, match="has version 2, and 1 is read"):
        ReplyCache(other)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be used"):
        ReplyCache(tmp_path / "file" / "r")
