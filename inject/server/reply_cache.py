"""Replies of servers in one SQLite file, so that nothing is asked twice.

A reply is kept under the digest of its request (`inject.server.request`) the moment it comes; the
first one stays. The file holds neither prompts nor keys, and is readable by its owner alone.
Several processes may use it at a time (write-ahead log; not on a network file system). Cost: some
0.1 ms a reply.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from inject.errors import InputError
from inject.server.reply import Reply

VERSION = 1
_LOOKED_UP = 500
_WAIT_SECONDS = 60.0
_COLUMNS = "text, model, tokens_in, tokens_out, log_probabilities"


class ReplyCache:
    """A file of replies.

    Raises:
        InputError: the file is none of ours, damaged, of another version, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
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
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def get(self, names: Sequence[str]) -> dict[str, Reply]:
        """Return the replies that are there, by their request's digest."""
        found: dict[str, Reply] = {}
        with self._turn:
            for start in range(0, len(names), _LOOKED_UP):
                some = names[start : start + _LOOKED_UP]
                places = ", ".join("?" * len(some))
                try:
                    rows = self._connection.execute(
                        f"SELECT request, {_COLUMNS} FROM replies WHERE request IN ({places})",
                        list(some),
                    ).fetchall()
                except sqlite3.Error as error:
                    raise self._unusable(error) from error
                for name, text, model, tokens_in, tokens_out, listed in rows:
                    found[name] = Reply(
                        text, model, tokens_in, tokens_out, json.loads(listed) if listed else None
                    )
        return found

    def keep(self, replies: Mapping[str, Reply]) -> dict[str, Reply]:
        """Keep replies by their request's digest, all or none.

        Returns:
            Those that are kept: for each request the first that came, here or elsewhere.
        """
        rows = [
            (name, *one[:4], json.dumps(dict(one[4])) if one[4] else None)
            for name, one in replies.items()
        ]
        with self._turn:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                kept = self._connection.executemany(
                    f"INSERT OR IGNORE INTO replies (request, {_COLUMNS}) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    rows,
                ).rowcount
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise self._unusable(error) from error
        return dict(replies) if kept == len(rows) else self.get(list(replies))

    def close(self) -> None:
        """Close the file."""
        with self._turn:
            self._connection.close()

    def _open(self) -> None:
        run = self._connection.execute
        run("PRAGMA journal_mode = WAL")
        # A killed process loses nothing so; a power failure may lose the last replies.
        run("PRAGMA synchronous = NORMAL")
        run("BEGIN IMMEDIATE")
        (version,) = run("PRAGMA user_version").fetchone()
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version not in (0, VERSION) or (version == 0 and tables):
            run("ROLLBACK")
            raise InputError(
                f"the file of replies has version {version}, and {VERSION} is read",
                where=str(self._path),
                hint="Move it away; what it holds will be asked for again.",
            )
        run(
            "CREATE TABLE IF NOT EXISTS replies (request TEXT PRIMARY KEY, text TEXT NOT NULL, "
            "model TEXT, tokens_in INTEGER, tokens_out INTEGER, log_probabilities TEXT) "
            "WITHOUT ROWID"
        )
        run(f"PRAGMA user_version = {VERSION}")
        run("COMMIT")

    def _unusable(self, error: Exception) -> InputError:
        return InputError(
            f"the file of replies cannot be used ({error})",
            where=str(self._path),
            hint="Move it away if it is damaged; what it holds will be asked for again.",
        )
