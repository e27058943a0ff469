"""How a run shows its progress: bars on a terminal, one line a step elsewhere.

Everything goes to standard error, so that standard output holds results alone. Bars and times are
rich's. An executor calls a `Progress`; nothing that it does changes a result.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from inject.step import Step


class Progress:
    """Receives the events of a run, and shows nothing; others derive from it."""

    def run_started(self, steps: "Sequence[Step]") -> None:
        """A run begins; it will build these steps."""

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """The build of a step begins; it is number `number` (from 1) of `total` to build."""

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """A step has done `done` of `total` units; the total is None where it is not known."""

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """A step is done. `built` is False when another process built it meanwhile, or when the
        store held an artifact of the same inputs under another name, `same_as`."""

    def notice(self, text: str) -> None:
        """A message for the user, such as that the run waits for another run."""


class Lines(Progress):
    """One line a step, and one every half minute of a long step; for logs and pipes."""

    def __init__(self, stream: TextIO, *, every: float = 30.0) -> None:
        self._stream = stream
        self._every = every
        # By step: several may run side by side.
        self._last: dict[str, float] = {}
        self._places: dict[str, str] = {}

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """Print `[2/9] corpus …`."""
        self._places[name] = f"[{number}/{total}]"
        self._last[name] = time.monotonic()
        self._print(name, f"{name} …")

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """Print the progress of the step, at most every half minute."""
        now = time.monotonic()
        if now - self._last.get(name, 0.0) >= self._every:
            self._last[name] = now
            share = f"{done:,.0f} of {total:,.0f}" if total else f"{done:,.0f}"
            words = " ".join(part for part in (f"{name}: {share}", unit) if part)
            self._print(name, ", ".join(part for part in (words, note) if part))

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """Print how long the step took."""
        result = f"done in {duration(seconds)}" if built else _reused(same_as)
        self._print(name, f"{name}: {result}")
        self._places.pop(name, None)

    def notice(self, text: str) -> None:
        """Print the text."""
        running = [*self._places]
        self._print(running[0] if len(running) == 1 else "", text)

    def _print(self, name: str, text: str) -> None:
        place = self._places.get(name, "")
        print(" ".join(part for part in (place, text) if part), file=self._stream, flush=True)


class Bars(Progress):
    """A bar for each step that runs, a line for each that is done; for terminals."""

    def __init__(self, console: "Console") -> None:
        from rich.progress import (
            BarColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        def cut(ratio: int) -> Column:
            return Column(ratio=ratio, no_wrap=True, overflow="ellipsis")

        # On a narrow terminal names and figures are cut, the times never.
        self._console = console
        self._rich = RichProgress(
            SpinnerColumn(table_column=Column(width=1)),
            TextColumn("{task.description}", markup=False, table_column=cut(3)),
            BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=4)),
            TextColumn("{task.fields[amount]}", markup=False, table_column=cut(2)),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
            TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
            console=console,
            transient=True,
            expand=True,
        )
        # By step: several may run side by side.
        self._tasks: dict[str, TaskID] = {}
        self._whole: TaskID | None = None

    def __enter__(self) -> "Bars":
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()

    def run_started(self, steps: "Sequence[Step]") -> None:
        """Show the bar of the whole run."""
        if steps:
            self._whole = self._rich.add_task("whole run", total=len(steps), amount="")

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """Show a new bar."""
        self._tasks[name] = self._rich.add_task(f"{number}/{total}  {name}", total=None, amount="")

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """Move the bar."""
        share = f"{done:,.0f}/{total:,.0f}" if total else f"{done:,.0f}"
        amount = " ".join(part for part in (share, unit, note) if part)
        if name in self._tasks:
            self._rich.update(self._tasks[name], completed=done, total=total, amount=amount)

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """Replace the bar by a line."""
        from rich.text import Text

        if name in self._tasks:
            self._rich.remove_task(self._tasks.pop(name))
        if self._whole is not None:
            self._rich.advance(self._whole)
        result = duration(seconds) if built else _reused(same_as)
        self._console.print(Text.assemble(("✓ ", "green"), name, (f"  {result}", "dim")))

    def notice(self, text: str) -> None:
        """Print the text above the bar."""
        from rich.text import Text

        self._console.print(Text(text, style="yellow"))


def _reused(same_as: str | None) -> str:
    if same_as is not None:
        return f"not built again, all that it reads is as it was for {same_as}"
    return "built by another run meanwhile"


@contextmanager
def show_progress(*, stream: TextIO | None = None) -> Iterator[Progress]:
    """Yield bars where `stream` (standard error by default) is a terminal, else lines."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield Lines(stream)
        return
    from rich.console import Console

    with Bars(Console(file=stream)) as bars:
        yield bars


@contextmanager
def task_progress(name: str, *, unit: str = "tokens") -> Iterator[Callable[..., None]]:
    """Show the bar of a command that does one thing, from the first call on.

    Yields a function of the units done, all units (None: unknown), and a note.
    """
    started = False
    with show_progress() as progress:

        def on_units(done: float, total: float | None, note: str = "") -> None:
            nonlocal started
            if not started:
                progress.step_started(name, number=1, total=1)
                started = True
            progress.step_advanced(name, done, total, unit, note)

        yield on_units


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
