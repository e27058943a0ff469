"""Replies of servers in one SQLite file, so that no request is sent twice.

A reply is kept under the digest of its request (`inject.server.request`) as soon as it arrives,
with its own digest; the first one stays, and a damaged one is dropped and requested again. The file
contains neither prompts nor keys, and is readable by its owner only; for a text whose
log-probabilities were read it has the ids of the tokens, if the server gives them. Several
processes may use it at a time (write-ahead log; not on a network file system). Cost: some 0.1 ms a
reply.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from inject.errors import InputError
from inject.verified_files import checksum

VERSION = 2
_WAIT_SECONDS = 60.0
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)
"""The library's errors; the second for messages that quote damaged text."""
_COLUMNS = "text, model, tokens_in, tokens_out, log_probabilities, checksum"
_DROP = "DELETE FROM replies WHERE request = ?"


class TextTokens(NamedTuple):
    """A text's tokens as a server gives them; one entry for each but the first, without history."""

    offsets: Sequence[Sequence[int]]
    """Characters [start, stop) of the text; −1 for a token that is not in it."""
    log_probabilities: Sequence[float]
    ids: Sequence[int]
    """Below 0, and alike for tokens that are written alike, if the server gives none."""
    ranks: Sequence[int] | None = None
    fingerprint: str | None = None
    """Of the system that answered, as it reports itself."""


class Reply(NamedTuple):
    """The reply to one request."""

    text: str
    model: str | None = None
    """The name that the server itself gives its model."""
    tokens_in: int | None = None
    """Tokens of the prompt, as the server counts; None if it does not report them."""
    tokens_out: int | None = None
    """Tokens written, as the server counts; None if it does not report them."""
    log_probabilities: Mapping[str, float] | None = None
    """Of the likeliest first tokens, if they were requested and the server gave them."""
    tokens: TextTokens | None = None
    """Of the prompt, if they were requested."""


class ReplyCache:
    """A file of replies.

    Raises:
        InputError: a file that is not ours, is damaged, has another version, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.damaged = 0
        """Number of damaged replies, which were dropped."""
        self._path = path
        # One connection for all threads: they take turns.
        self._turn = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._open()
        except (OSError, *_DAMAGED) as error:
            raise self._unusable_error(error) from error

    def get(self, names: Sequence[str]) -> dict[str, Reply]:
        """Return the replies that are there, by their request's digest."""
        replies: dict[str, Reply] = {}
        with self._statement_runner() as run:
            for name in names:
                row = run(f"SELECT {_COLUMNS} FROM replies WHERE request = ?", [name]).fetchone()
                if row is None:
                    continue
                *plain, listed, own = row
                if own is None or own != _checksum([name, *plain, listed]):
                    self.damaged += 1
                    run(_DROP, [name])
                    continue
                listed = json.loads(listed) if listed else None
                tokens = TextTokens(*listed) if isinstance(listed, list) else None
                listed = None if tokens else listed
                replies[name] = Reply(*plain)._replace(log_probabilities=listed, tokens=tokens)
        return replies

    def keep(self, replies: Mapping[str, Reply]) -> dict[str, Reply]:
        """Keep replies by their request's digest, all or none.

        Returns:
            Those that are kept: for each request the first that came, here or elsewhere.
        """
        rows = [
            [name, *reply[:4], json.dumps(listed) if (listed := reply.tokens or reply[4]) else None]
            for name, reply in replies.items()
        ]
        with self._statement_runner() as run:
            run("BEGIN IMMEDIATE")
            n_inserted = sum(
                run(
                    f"INSERT OR IGNORE INTO replies (request, {_COLUMNS}) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [*row, _checksum(row)],
                ).rowcount
                for row in rows
            )
            run("COMMIT")
        if n_inserted == len(rows):
            return dict(replies)
        stored = self.get(list(replies))
        # A damaged key can keep a reply out that cannot be read either.
        for name in replies.keys() - stored.keys():
            raise self._unusable_error(sqlite3.DatabaseError(f"it cannot keep the reply {name}"))
        return stored

    def drop(self, names: Sequence[str]) -> None:
        """Drop the replies to requests, by their digest."""
        with self._statement_runner() as run:
            for name in names:
                run(_DROP, [name])

    def notes(self) -> tuple[str, ...]:
        """Return notes on the kept replies."""
        if not self.damaged:
            return ()
        return (
            f"{self.damaged} of the replies kept in {self._path} were damaged, and were requested "
            "again",
        )

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._connection.close()

    @contextmanager
    def _statement_runner(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """Yield the function that runs a statement; one thread at a time has it."""
        with self._turn:
            try:
                yield self._connection.execute
            except _DAMAGED as error:
                raise self._unusable_error(error) from error

    def _open(self) -> None:
        run = self._connection.execute
        # Invalid UTF-8 is a damaged reply, not an unreadable file.
        self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
        run("PRAGMA journal_mode = WAL")
        # With it a killed process loses nothing; a power failure may lose the last replies.
        run("PRAGMA synchronous = NORMAL")
        run("BEGIN IMMEDIATE")
        (version,) = run("PRAGMA user_version").fetchone()
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version not in (0, VERSION) or (version == 0 and tables):
            run("ROLLBACK")
            raise InputError(
                f"the file of replies has version {version}, but only {VERSION} can be read",
                where=str(self._path),
                hint="Move it away; its replies will be requested again.",
            )
        run(
            "CREATE TABLE IF NOT EXISTS replies (request TEXT PRIMARY KEY, text TEXT NOT NULL, "
            "model TEXT, tokens_in INTEGER, tokens_out INTEGER, log_probabilities TEXT, "
            "checksum TEXT) WITHOUT ROWID"
        )
        run(f"PRAGMA user_version = {VERSION}")
        run("COMMIT")

    def _unusable_error(self, error: Exception) -> InputError:
        return InputError(
            f"the file of replies cannot be used ({error})",
            where=str(self._path),
            hint="Move it away if it is damaged; its replies will be requested again.",
        )


def _checksum(row: Sequence[object]) -> str | None:
    """Return the digest of a request's name and its reply; None if that is not a reply."""
    try:
        return checksum(row)
    except TypeError:
        return None
