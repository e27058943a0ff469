"""How a run tells a person where it is: bars on a terminal, one line a step elsewhere.

Everything goes to standard error, so that standard output holds results alone.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.console import Console


class Progress(Protocol):
    """What an executor tells while it runs."""

    def started(self, name: str, *, number: int, total: int) -> None:
        """A step begins to be built; it is number `number` (from 1) of `total` to build."""
        ...

    def advanced(self, name: str, done: float, total: float | None, unit: str, note: str) -> None:
        """A step is at `done` of `total` units; None where nobody knows the total."""
        ...

    def finished(self, name: str, *, built: bool, seconds: float) -> None:
        """A step is done; `built` is False when another process built it meanwhile."""
        ...

    def notice(self, text: str) -> None:
        """Something a person should know, such as waiting for another run."""
        ...


class Pace:
    """Foretells how long a step still takes, from how far it came since it was first heard of.

    Not from its beginning: a model is loaded first, and a restart begins in the middle.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, float] | None = None

    def left(self, done: float, total: float | None) -> str:
        """Return `2 min 5 s left`; empty while nobody can know."""
        now = self._clock()
        if self._first is None or done < self._first[1]:
            self._first = (now, done)
        since, before = self._first
        if not total or done <= before or now - since < 1:
            return ""
        return f"{duration((total - done) * (now - since) / (done - before))} left"


class Silent:
    """Says nothing."""

    def started(self, name: str, *, number: int, total: int) -> None:
        """Say nothing."""

    def advanced(self, name: str, done: float, total: float | None, unit: str, note: str) -> None:
        """Say nothing."""

    def finished(self, name: str, *, built: bool, seconds: float) -> None:
        """Say nothing."""

    def notice(self, text: str) -> None:
        """Say nothing."""


class Lines:
    """One line a step, and one every half minute of a long step; for logs and pipes."""

    def __init__(self, stream: TextIO, *, every: float = 30.0) -> None:
        self._stream = stream
        self._every = every
        self._last = time.monotonic()
        self._place = ""
        self._pace = Pace()

    def started(self, name: str, *, number: int, total: int) -> None:
        """Print `[2/9] corpus …`."""
        self._place = f"[{number}/{total}]"
        self._last = time.monotonic()
        self._pace = Pace()
        self._print(f"{name} …")

    def advanced(self, name: str, done: float, total: float | None, unit: str, note: str) -> None:
        """Print how far the step is, at most every half minute."""
        now = time.monotonic()
        left = self._pace.left(done, total)
        if now - self._last >= self._every:
            self._last = now
            share = f"{done:,.0f} of {total:,.0f}" if total else f"{done:,.0f}"
            words = " ".join(part for part in (f"{name}: {share}", unit) if part)
            self._print(", ".join(part for part in (words, note, left) if part))

    def finished(self, name: str, *, built: bool, seconds: float) -> None:
        """Print how long the step took."""
        end = f"done in {duration(seconds)}" if built else "built by another run meanwhile"
        self._print(f"{name}: {end}")

    def notice(self, text: str) -> None:
        """Print the text."""
        self._print(text)

    def _print(self, text: str) -> None:
        print(" ".join(part for part in (self._place, text) if part), file=self._stream, flush=True)


class Bars:
    """A bar for the step that runs, a line for each that is done; for terminals."""

    def __init__(self, console: "Console") -> None:
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._console = console
        self._rich = RichProgress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[said]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._rich.add_task("", visible=False, total=None, said="", left="")
        self._pace = Pace()

    def __enter__(self) -> "Bars":
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()

    def started(self, name: str, *, number: int, total: int) -> None:
        """Show a new bar."""
        self._pace = Pace()
        self._rich.reset(
            self._task,
            description=f"{number}/{total}  {name}",
            visible=True,
            total=None,
            said="",
            left="",
        )

    def advanced(self, name: str, done: float, total: float | None, unit: str, note: str) -> None:
        """Move the bar."""
        share = f"{done:,.0f}/{total:,.0f}" if total else f"{done:,.0f}"
        said = " ".join(part for part in (share, unit, note) if part)
        left = self._pace.left(done, total)
        self._rich.update(self._task, completed=done, total=total, said=said, left=left)

    def finished(self, name: str, *, built: bool, seconds: float) -> None:
        """Replace the bar by a line."""
        from rich.text import Text

        self._rich.update(self._task, visible=False)
        end = duration(seconds) if built else "built by another run meanwhile"
        self._console.print(Text.assemble(("✓ ", "green"), name, (f"  {end}", "dim")))

    def notice(self, text: str) -> None:
        """Print the text above the bar."""
        from rich.text import Text

        self._console.print(Text(text, style="yellow"))


@contextmanager
def showing(*, stream: TextIO | None = None) -> Iterator[Progress]:
    """Yield bars when `stream` (standard error by default) is a terminal, else lines."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield Lines(stream)
        return
    from rich.console import Console

    with Bars(Console(file=stream)) as bars:
        yield bars


def duration(seconds: float) -> str:
    """Return a duration in words: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
