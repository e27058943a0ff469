"""The steps of a run while it goes on, as a table: done, running where, waiting, failed and why."""

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from spikein.cli.output import console, say

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from spikein.executors.live_status import RunStatus, StepStatus

_ORDER = ("failed", "running", "waiting", "blocked", "done")
_STYLES = {
    "failed": "bold red",
    "running": "cyan",
    "blocked": "yellow",
    "done": "green",
    "waiting": "dim",
}
_WORDS = {"blocked": "not begun"}
_HEADER_LINES = 6
_MOST_NAMES = 3
_LOOK_SECONDS = 1.0


def summary(run: "RunStatus") -> str:
    """Return `tiny, by local (process 12 on host): running, 3 of 9 steps done, 2 running`."""
    counts = Counter(step.state for step in run.steps)
    parts = [f"{counts['done']} of {len(run.steps)} steps done"]
    parts += [
        f"{counts[state]} {_WORDS.get(state, state)}"
        for state in ("running", "waiting", "failed", "blocked")
        if counts[state]
    ]
    said = {"running": "running", "finished": "finished", "failed": "ended with failed steps"}
    state = said.get(run.state, "interrupted; run it again to go on")
    return (
        f"{run.name}, by {run.executor or 'an executor'} (process {run.process} on {run.host}): "
        f"{state}, {', '.join(parts)}"
    )


def print_run(run: "RunStatus") -> None:
    """Print every step of a run, in the order of the graph."""
    console().print(_table(run, run.steps))
    for step in run.steps:
        for line in _below(step):
            say(line)
    say(summary(run))


def watch_run(look: Callable[[], "RunStatus | None"]) -> None:
    """Show a run until it ends; on a terminal in place, elsewhere a line at each change.

    Args:
        look: returns the run's status; None where there is no longer one.
    """
    run = look()
    if not sys.stdout.isatty():
        last = ""
        while run is not None:
            if (line := summary(run)) != last:
                say(last := line)
            if run.state != "running":
                break
            time.sleep(_LOOK_SECONDS)
            run = look()
    else:
        from rich.live import Live

        screen = console()
        with Live(console=screen, refresh_per_second=2, transient=True) as live:
            while run is not None and run.state == "running":
                live.update(_fitting(run, screen.height))
                time.sleep(_LOOK_SECONDS)
                run = look()
    if run is not None:
        print_run(run)


def _fitting(run: "RunStatus", height: int) -> "RenderableType":
    """Return what fits a screen: failed and running steps first."""
    from rich.console import Group
    from rich.text import Text

    ranked = sorted(run.steps, key=lambda step: _ORDER.index(step.state))
    most = max(height - _HEADER_LINES, 3)
    shown, used = [], 0
    for step in ranked:
        used += 1 + len(_below(step))
        if used > most:
            break
        shown.append(step)
    rest = len(ranked) - len(shown)
    lines = [Text(line, style="dim") for step in shown for line in _below(step)]
    if rest:
        lines.append(Text(f"… and {rest} more steps", style="dim"))
    return Group(_table(run, shown), *lines, Text(summary(run)))


def _table(run: "RunStatus", steps: "tuple[StepStatus, ...] | list[StepStatus]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("step", "state", "time", "where", "progress"):
        table.add_column(title, overflow="fold", no_wrap=title in ("state", "time"))
    names = {step.digest: step for step in run.steps}
    for step in steps:
        state = _WORDS.get(step.state, step.state)
        if step.attempt > 1:
            state += f", attempt {step.attempt}"
        table.add_row(
            Text(step.name),
            Text(state, style=_STYLES[step.state]),
            Text(_time(step)),
            Text(step.where),
            Text(_progress(step, names)),
        )
    return table


def _below(step: "StepStatus") -> list[str]:
    """Return what stands below the table for a step that failed: the last lines of its log."""
    if step.state != "failed" or not step.lines:
        return []
    return [f"Last lines of {step.name}:", *(f"    {line}" for line in step.lines)]


def _time(step: "StepStatus") -> str:
    from spikein.progress import duration

    if step.stored:
        return "stored"
    if step.state == "running" and step.began:
        return duration(max(time.time() - step.began, 0.0))
    return "" if step.seconds is None else duration(step.seconds)


def _progress(step: "StepStatus", names: "dict[str, StepStatus]") -> str:
    if step.state in ("failed", "blocked"):
        return step.problem.splitlines()[0] if step.problem else ""
    if step.state == "waiting":
        needed = [names[one] for one in step.needs if one in names]
        waits = [one.name for one in needed if one.state != "done"]
        if not waits:
            return step.problem
        more = len(waits) - _MOST_NAMES
        rest = f" and {more} more" if more > 0 else ""
        return f"waits for {', '.join(waits[:_MOST_NAMES])}{rest}"
    if step.state == "running" and step.done is not None:
        share = f"{step.done:,.0f} of {step.total:,.0f}" if step.total else f"{step.done:,.0f}"
        return ", ".join(part for part in (f"{share} {step.unit}".strip(), step.note) if part)
    return ""
