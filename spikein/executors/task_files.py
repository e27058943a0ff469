"""The files by which the process that builds a step and the run that waits for it know each other.

They lie in the folder of the run, which all machines of a cluster see: how far the step is, where
it runs, its log, and how it ended. Every file is replaced whole.
"""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from inject.secrets import masked

STATUS = "status.json"
MARK = "--- "
"""How our own lines in a log begin."""
LAST_LINES = 12
"""Of a step's log, in messages and in `spikein status`."""
_LOG_BYTES = 1 << 16
_LINE_LENGTH = 300
_PROGRESS = ("where", "began", "done", "total", "unit", "note")


class TaskFiles:
    """The files of one step in one run."""

    def __init__(self, run_folder: Path, digest: str) -> None:
        self._folder = run_folder / "tasks"
        self._digest = digest[:12]
        self.log = run_folder / "logs" / f"{self._digest}.log"

    def write_progress(self, **values: Any) -> None:
        """Say how far the step is; a disk that is full loses nothing but that."""
        with suppress(OSError):
            self._write("progress", values)

    def progress(self) -> dict[str, Any]:
        """Return what the step last said; empty if it said nothing."""
        found = self._read("progress") or {}
        return {name: value for name, value in found.items() if name in _PROGRESS}

    def notices(self) -> list[str]:
        """Return the last messages of the step for a person."""
        return list((self._read("progress") or {}).get("notices", ()))

    def write_end(self, values: dict[str, Any]) -> None:
        """Say how the step ended."""
        with suppress(OSError):
            self._write("end", values)

    def end(self) -> dict[str, Any] | None:
        """Return how the step ended; None while nobody said."""
        return self._read("end")

    def clear(self) -> None:
        """Forget what an earlier attempt said."""
        for what in ("progress", "end"):
            self._path(what).unlink(missing_ok=True)

    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines of the log, without secrets and without control characters."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _LOG_BYTES))
                text = file.read().decode("utf-8", errors="replace")
        except OSError:
            return ()
        lines = [re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", line) for line in text.splitlines()]
        # Lines of ours, such as when an attempt began, say nothing of what went wrong.
        shown = [
            line.rstrip()[:_LINE_LENGTH]
            for line in lines
            if line.strip() and not line.startswith(MARK)
        ]
        return tuple(masked(line) for line in shown[-LAST_LINES:])

    def _path(self, what: str) -> Path:
        return self._folder / f"{self._digest}.{what}.json"

    def _write(self, what: str, values: dict[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(what)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(values), encoding="utf-8")
        temporary.replace(path)

    def _read(self, what: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self._path(what).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None
