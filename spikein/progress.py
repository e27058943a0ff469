"""How a run shows its progress: bars on a terminal, one line a step elsewhere.

Both show the running step and the whole run: steps done, time elapsed, time left. Everything goes
to standard error, so that standard output holds results alone. Bars, spinner and elapsed time are
rich's; the time left is ours (`spikein.estimates.remaining_time`), because it is also shown in
logs, counts the steps that have not begun, and knows that a resumed step begins in the middle.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from spikein.estimates.remaining_time import Forecast, StepPace

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from inject.step import Step


class Progress(Protocol):
    """Receives the events of a run; an executor calls it. Nothing that it does changes a result."""

    def run_started(self, steps: "Sequence[Step]") -> None:
        """A run begins; it will build these steps."""
        ...

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """The build of a step begins; it is number `number` (from 1) of `total` to build."""
        ...

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """A step has done `done` of `total` units; the total is None where it is not known."""
        ...

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """A step is done. `built` is False when another process built it meanwhile, or when the
        store held an artifact of the same inputs under another name, `same_as`."""
        ...

    def notice(self, text: str) -> None:
        """A message for the user, such as that the run waits for another run."""
        ...


class RunProgress:
    """The progress of a whole run: steps done, time elapsed, time left."""

    def __init__(
        self, steps: "Sequence[Step]" = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total = len(steps)
        self.done = 0
        self._clock = clock
        self._began = clock()
        self._forecast = Forecast(steps)
        self._running: dict[str, float] = {}

    def started(self, name: str) -> None:
        """A step begins."""
        self._running[name] = self._clock()

    def finished(self, name: str, seconds: float, *, built: bool) -> None:
        """A step is done."""
        self.done += 1
        self._running.pop(name, None)
        self._forecast.finished(name, seconds, built=built)

    def elapsed(self) -> float:
        """Return the seconds since the run began."""
        return self._clock() - self._began

    def remaining(self) -> str:
        """Return `about 4 min 10 s left`; empty while there is no estimate, and at the end."""
        now = self._clock()
        running = {name: now - began for name, began in self._running.items()}
        seconds = self._forecast.seconds_left(running)
        return f"about {duration(seconds)} left" if seconds else ""

    def summary(self) -> str:
        """Return `3 of 9 steps in 2 min 0 s, about 4 min 10 s left`; empty before a run began."""
        if not self.total:
            return ""
        done = f"{self.done} of {max(self.total, self.done)} steps in {duration(self.elapsed())}"
        return ", ".join(part for part in (done, self.remaining()) if part)


class Silent:
    """Shows nothing; a base class for a receiver of some events only."""

    def run_started(self, steps: "Sequence[Step]") -> None:
        """Show nothing."""

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """Show nothing."""

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """Show nothing."""

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """Show nothing."""

    def notice(self, text: str) -> None:
        """Show nothing."""


class Lines:
    """One line a step, and one every half minute of a long step; for logs and pipes."""

    def __init__(self, stream: TextIO, *, every: float = 30.0) -> None:
        self._stream = stream
        self._every = every
        # By step: several may run side by side.
        self._last: dict[str, float] = {}
        self._places: dict[str, str] = {}
        self._paces: dict[str, StepPace] = {}
        self._run = RunProgress()

    def run_started(self, steps: "Sequence[Step]") -> None:
        """Start the clock of the run."""
        self._run = RunProgress(steps)

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """Print `[2/9] corpus …`."""
        self._places[name] = f"[{number}/{total}]"
        self._last[name] = time.monotonic()
        self._paces[name] = StepPace()
        self._run.started(name)
        self._print(name, f"{name} …")

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """Print the progress of the step, at most every half minute."""
        now = time.monotonic()
        pace = self._paces.setdefault(name, StepPace())
        left = _time_left(pace.seconds_left(done, total))
        if now - self._last.get(name, 0.0) >= self._every:
            self._last[name] = now
            share = f"{done:,.0f} of {total:,.0f}" if total else f"{done:,.0f}"
            words = " ".join(part for part in (f"{name}: {share}", unit) if part)
            line = ", ".join(part for part in (words, note, left) if part)
            self._print(name, "; ".join(part for part in (line, self._run.summary()) if part))

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """Print how long the step took."""
        self._run.finished(name, seconds, built=built)
        result = _result(built, seconds, same_as)
        line = "; ".join(part for part in (f"{name}: {result}", self._run.summary()) if part)
        self._print(name, line)
        self._places.pop(name, None)

    def notice(self, text: str) -> None:
        """Print the text."""
        running = [*self._places]
        self._print(running[0] if len(running) == 1 else "", text)

    def _print(self, name: str, text: str) -> None:
        place = self._places.get(name, "")
        print(" ".join(part for part in (place, text) if part), file=self._stream, flush=True)


class Bars:
    """A bar for each step that runs, a line for each that is done; for terminals."""

    def __init__(self, console: "Console") -> None:
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
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
            TextColumn(
                "{task.fields[left]}", markup=False, table_column=Column(no_wrap=True, min_width=24)
            ),
            console=console,
            transient=True,
            expand=True,
        )
        self._whole = self._rich.add_task(
            "whole run", visible=False, total=None, amount="", left=""
        )
        # By step: several may run side by side.
        self._tasks: dict[str, TaskID] = {}
        self._paces: dict[str, StepPace] = {}
        self._run = RunProgress()

    def __enter__(self) -> "Bars":
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()

    def run_started(self, steps: "Sequence[Step]") -> None:
        """Show the bar of the whole run."""
        self._run = RunProgress(steps)
        self._rich.reset(self._whole, visible=bool(steps), total=len(steps), amount="", left="")

    def _show_whole(self) -> None:
        done, total = self._run.done, max(self._run.total, self._run.done)
        amount = f"{done}/{total} steps"
        self._rich.update(
            self._whole, completed=done, total=total, amount=amount, left=self._run.remaining()
        )

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """Show a new bar."""
        self._paces[name] = StepPace()
        self._run.started(name)
        self._show_whole()
        self._tasks[name] = self._rich.add_task(
            f"{number}/{total}  {name}", total=None, amount="", left=""
        )

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """Move the bar."""
        share = f"{done:,.0f}/{total:,.0f}" if total else f"{done:,.0f}"
        amount = " ".join(part for part in (share, unit, note) if part)
        if name not in self._tasks:
            return
        left = _time_left(self._paces[name].seconds_left(done, total))
        self._rich.update(self._tasks[name], completed=done, total=total, amount=amount, left=left)
        self._show_whole()

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """Replace the bar by a line."""
        from rich.text import Text

        if name in self._tasks:
            self._rich.remove_task(self._tasks.pop(name))
        self._run.finished(name, seconds, built=built)
        self._show_whole()
        result = duration(seconds) if built else _result(built, seconds, same_as)
        self._console.print(Text.assemble(("✓ ", "green"), name, (f"  {result}", "dim")))

    def notice(self, text: str) -> None:
        """Print the text above the bar."""
        from rich.text import Text

        self._console.print(Text(text, style="yellow"))


def _result(built: bool, seconds: float, same_as: str | None) -> str:
    if same_as is not None:
        return f"not built again, all that it reads is as it was for {same_as}"
    return f"done in {duration(seconds)}" if built else "built by another run meanwhile"


def _time_left(seconds: float | None) -> str:
    return "" if seconds is None else f"{duration(seconds)} left"


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
