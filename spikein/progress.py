"""Progress of a run: one line per stage, above a live line on a terminal.

Everything goes to standard error, so that standard output contains only results. The live line is
rich's. An executor calls a `Progress`; nothing that it does changes a result.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import IO, TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from inject.step import Step


class Progress:
    """Receive the events of a run and show nothing; a base class."""

    def run_started(self, steps: "Sequence[Step]") -> None:
        """A run begins; it will build these steps."""

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """The build of a step begins; it is number `number` (from 1) of `total` to build."""

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """A step has done `done` of `total` units; the total is None if it is not known."""

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """A step is done. `built` is False when another process built it meanwhile, or when the
        store held an artifact of the same inputs under another name, `same_as`."""

    def notice(self, text: str) -> None:
        """Show a message to the user, for example that the run waits for another run."""


class Lines(Progress):
    """One line per stage or step, and occasional lines in a long stage. For logs and pipes."""

    def __init__(self, stream: IO[str], *, verbose: bool = False, interval: float = 60.0) -> None:
        # A silent display needs no tally.
        from spikein.run_tally import RunTally

        self._stream = stream
        self._verbose = verbose
        self._interval = interval
        self._began = self._printed = time.monotonic()
        self._tally = RunTally()
        # By step: several may run side by side.
        self._places: dict[str, str] = {}

    def run_started(self, steps: "Sequence[Step]") -> None:
        """Record the steps to build."""
        self._tally.plan(steps)

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """Print `[2/9] corpus …` if every step is logged."""
        self._tally.start(name)
        self._places[name] = f"[{number}/{total}]"
        if self._verbose:
            self._print(f"{self._places[name]} {name} …")

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """Print the progress of step and run once a minute, less often in a long run."""
        self._tally.advance(name, done, total)
        now = time.monotonic()
        if now - self._printed >= max(self._interval, (now - self._began) / 50):
            left = self._tally.left()
            time_left = "" if left is None else f"about {duration(left)} left"
            place = self._places.get(name, "")
            amount = ", ".join(
                part for part in (_amount(done, total, unit), note, time_left) if part
            )
            self._print(f"{place} {name}: {amount}".lstrip())

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """Print a stage after its last step; or the step, if every step is logged."""
        stage = self._tally.finish(name, seconds=seconds, reused=not built)
        place = self._places.pop(name, "")
        if self._verbose:
            result = f"done in {duration(seconds)}" if built else _explain_reuse(same_as)
            self._print_done(f"{place} {name}: {result}".lstrip())
        elif stage is not None:
            steps = f"{stage.steps} step{'' if stage.steps == 1 else 's'}"
            reused = f", {stage.reused} not built again" if stage.reused else ""
            self._print_done(f"{stage.stage:<14}  {steps:>8}  {duration(stage.seconds)}{reused}")

    def notice(self, text: str) -> None:
        """Print the text, with its step if only one is running."""
        running = [*self._places]
        self._print(f"{running[0]}: {text}" if len(running) == 1 else text)

    def _print(self, text: str) -> None:
        self._printed = time.monotonic()
        print(text, file=self._stream, flush=True)

    def _print_done(self, text: str) -> None:
        self._print(text)


class LiveLine(Lines):
    """The same lines above a live line: running steps, progress and time left."""

    def __init__(self, console: "Console", *, verbose: bool = False) -> None:
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        def text(field: str, column: Column) -> TextColumn:
            return TextColumn("{task." + field + "}", markup=False, table_column=column)

        super().__init__(console.file, verbose=verbose, interval=inf)
        # On a narrow terminal names and figures are cut, but never the times.
        self._console = console
        self._rich = RichProgress(
            SpinnerColumn(table_column=Column(width=1)),
            text("description", Column(ratio=3, no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=4)),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
            text("fields[left]", Column(no_wrap=True, min_width=11)),
            console=console,
            transient=True,
            expand=True,
        )
        self._line: TaskID | None = None
        self._amounts: dict[str, str] = {}

    def __enter__(self) -> "LiveLine":
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()

    def step_started(self, name: str, *, number: int, total: int) -> None:
        """Name the step in the line."""
        super().step_started(name, number=number, total=total)
        self._show()

    def step_advanced(
        self, name: str, done: float, total: float | None, unit: str, note: str
    ) -> None:
        """Move the line."""
        super().step_advanced(name, done, total, unit, note)
        self._amounts[name] = " ".join(part for part in (_amount(done, total, unit), note) if part)
        self._show()

    def step_finished(
        self, name: str, *, built: bool, seconds: float, same_as: str | None = None
    ) -> None:
        """Print what is done above the line."""
        super().step_finished(name, built=built, seconds=seconds, same_as=same_as)
        self._amounts.pop(name, None)
        self._show()

    def notice(self, text: str) -> None:
        """Print the text above the line."""
        self._write((text, "yellow"))

    def _show(self) -> None:
        """Show the running steps, and the progress of a single one."""
        if self._line is None:
            self._line = self._rich.add_task("", total=None, left="")
        names = [*self._places]
        amount = f"  {self._amounts.get(names[0], '')}" if len(names) == 1 else ""
        place = self._places[names[-1]] if names else ""
        left = self._tally.left()
        elapsed = time.monotonic() - self._began
        self._rich.update(
            self._line,
            description=f"{place} {', '.join(names)}{amount}",
            # A bar of time: one step may take as long as twenty others.
            total=None if left is None else 1.0,
            completed=0.0 if left is None else elapsed / max(elapsed + left, 1e-9),
            left="" if left is None else f"{duration(left)} left",
        )

    def _print(self, text: str) -> None:
        self._write((text, "dim"))

    def _print_done(self, text: str) -> None:
        self._write(("✓ ", "green"), (text, ""))

    def _write(self, *parts: tuple[str, str]) -> None:
        """Print texts, each with its style."""
        from rich.text import Text

        self._console.print(Text.assemble(*parts))


def _amount(done: float, total: float | None, unit: str) -> str:
    share = f"{done:,.0f} of {total:,.0f}" if total else f"{done:,.0f}"
    return f"{share} {unit}".rstrip()


def _explain_reuse(same_as: str | None) -> str:
    if same_as is not None:
        return f"not built again: its inputs are the same as for {same_as}"
    return "built by another run meanwhile"


@contextmanager
def show_progress(*, verbose: bool = False, stream: TextIO | None = None) -> Iterator[Progress]:
    """Yield a progress display on `stream`, standard error by default.

    Args:
        verbose: log every step, not every stage.
        stream: a terminal also gets a live line.
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield Lines(stream, verbose=verbose)
        return
    from rich.console import Console

    with LiveLine(Console(file=stream), verbose=verbose) as live:
        yield live


@contextmanager
def task_progress(name: str, *, unit: str = "tokens") -> Iterator[Callable[..., None]]:
    """Show the progress of a command with a single task, from the first call on.

    Yields a function of the units done, the total (None: unknown), and a note.
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
