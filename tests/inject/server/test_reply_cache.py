"""The file of replies: what is kept comes back, and a file that cannot be used is named."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inject.errors import InputError
from inject.server.reply_cache import Reply, ReplyCache

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


def test_a_file_that_cannot_be_used(tmp_path):
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match=r"file of replies cannot be used.*Move it away"):
        ReplyCache(damaged)
    assert damaged.read_bytes() == b"no database" * 100
    other = tmp_path / "other"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE mine (x)")
    with pytest.raises(InputError, match="has version 0, and 2 is read"):
        ReplyCache(other)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_bit_of_the_file_that_turned_changes_no_reply(tmp_path_factory, data):
    """Whatever bit: a reply is the one that was kept, or is asked for again and that is said, or
    the file is refused by name."""
    folder = tmp_path_factory.mktemp("replies")
    replies = {f"{number}": FULL._replace(text=f"ü text {number}") for number in range(12)}
    path = folder / "r"
    with closing(ReplyCache(path)) as cache:
        cache.keep(replies)
    content = bytearray(path.read_bytes())
    # Most of the file is room that nothing uses.
    used = [at for at, byte in enumerate(content) if byte]
    content[data.draw(st.sampled_from(used))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(bytes(content))
    try:
        with closing(ReplyCache(path)) as cache:
            found = cache.get(list(replies))
            notes = cache.notes()
            again = cache.keep({name: replies[name] for name in replies if name not in found})
    except InputError as error:
        refused = error
    else:
        refused = None
    if refused is not None:
        assert str(path) in str(refused)
        return
    assert {**found, **again} == replies
    assert found == {name: replies[name] for name in found}
    assert bool(notes) == bool(cache.damaged)
