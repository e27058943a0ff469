"""`spikein status`: list the runs, their progress, and damage to their artifacts."""

import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inject.errors import first_names
from inject.files import human_bytes
from spikein.cli import completion
from spikein.cli.options import RUNS, RunsFolder, RunStore, argument, option
from spikein.cli.output import console, print_table, say, tell, warn
from spikein.progress import duration

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
_WORDS = {"blocked": "not started"}
_HEADER_LINES = 6
_MOST_NAMES = 3
_LOOK_SECONDS = 1.0


def status(
    run: Annotated[
        str | None,
        argument(
            "[RUN|FILE]",
            "A run's name or folder, or an experiment file; all runs by default.",
            autocompletion=completion.runs,
        ),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
    watch: Annotated[
        bool,
        option(
            "--watch",
            "Show the steps of a running run until it ends; by default of the latest.",
        ),
    ] = False,
) -> None:
    """List the runs, or show the progress of one.

    For a run that is running or ended early, every step is shown: done, running and where,
    waiting and for what, or failed with the last lines of its log.

    [bold]Examples[/]

      spikein status

      spikein status quickstart

      spikein status my-experiment.yaml --watch
    """
    from spikein.store.filesystem import store_folder

    place = store_folder(store)
    file = Path(run) if run and run.endswith((".yaml", ".yml")) else None
    name = run
    if file is not None:
        from spikein.api.experiment import read

        name = read(file, ()).experiment.name
    if watch:
        _watch(place, name)
        return
    going = _find_latest(place, name) if name else None
    if going is not None and going.state != "finished":
        _print_run(going)
        if going.state == "running" or run is None:
            return
    if run is None:
        from spikein.executors.live_status import read_statuses

        for status_of_run in read_statuses(place):
            if status_of_run.state == "running":
                say(_summary(status_of_run))
        _print_runs(runs)
    elif file is not None:
        _file(file, place)
    elif going is None or going.state == "finished" or (runs / run).exists():
        _print_artifacts(run, runs, store)


def _find_latest(store: Path, name: str | None) -> "RunStatus | None":
    """Return the status of the latest run of a name; running ones come first."""
    from spikein.executors.live_status import read_statuses

    named = [status for status in read_statuses(store) if name is None or status.name == name]
    running = [status for status in named if status.state == "running"]
    return next(iter([*running, *named]), None)


def _print_runs(runs: Path) -> None:
    from spikein.runs.folder import run_rows

    rows = run_rows(runs)
    if not rows:
        say(f"No runs in {runs}/. Start with: spikein run quickstart")
        return
    print_table(
        ("run", "finished (UTC)", "artifacts", "state"),
        (
            (row.name, row.finished, f"{row.whole}/{row.linked}", row.problem or "whole")
            for row in rows
        ),
    )


def _file(file: Path, store: Path) -> None:
    from spikein.api.plan import plan

    result = plan(file, store=store)
    kinds = list(dict.fromkeys(row.kind for row in result.rows))
    print_table(
        ("step", "done", "of"),
        (
            (
                kind,
                sum(row.stored for row in result.rows if row.kind == kind),
                sum(row.kind == kind for row in result.rows),
            )
            for kind in kinds
        ),
    )
    left = sum(not row.stored for row in result.rows)
    say(f"{result.name}: {left} steps to do." if left else f"{result.name}: every step is done.")


def _print_artifacts(name: str, runs: Path, store: Path | None) -> None:
    from spikein.runs.folder import artifact_rows, find_run, folder_problem

    folder = find_run(runs, name)
    print_table(
        ("artifact", "size", "built (UTC)", "state"),
        (
            (row.name, human_bytes(row.size), row.created, row.problem or "whole")
            for row in artifact_rows(folder, store, read=True)
        ),
    )
    if problem := folder_problem(folder):
        warn(f"The run's folder: {problem}")
    say(f"Report: {folder / 'report.html'}", style="bold")


def _summary(run: "RunStatus") -> str:
    """Return `tiny, by local (process 12 on host): running, 3 of 9 steps done, 2 running`."""
    counts = Counter(step.state for step in run.steps)
    parts = [f"{counts['done']} of {len(run.steps)} steps done"]
    parts += [
        f"{counts[state]} {_WORDS.get(state, state)}"
        for state in ("running", "waiting", "failed", "blocked")
        if counts[state]
    ]
    texts = {"running": "running", "finished": "finished", "failed": "ended with failed steps"}
    state = texts.get(run.state, "interrupted; run it again to resume")
    return (
        f"{run.name}, by {run.executor or 'an executor'} (process {run.process} on {run.host}): "
        f"{state}, {', '.join(parts)}"
    )


def _print_run(run: "RunStatus") -> None:
    """Print every step of a run, in the order of the graph."""
    console().print(_table(run, run.steps))
    for step in run.steps:
        say(*_log_lines(step))
    say(_summary(run))


def _watch(store: Path, name: str | None) -> None:
    """Show the latest run until it ends: in place on a terminal, else one line per change.

    Raises:
        typer.Exit: with code 2 if there is no such run.
    """
    from spikein.executors.live_status import read_statuses

    run = _find_latest(store, name)
    if run is None:
        absent = f"no run of {name}" if name else "no run"
        tell(f"The store {store} has {absent}; give another store by --store.")
        raise typer.Exit(2)
    began = run.began

    def look() -> "RunStatus | None":
        return next((status for status in read_statuses(store) if status.began == began), None)

    if not sys.stdout.isatty():
        last = ""
        while run is not None:
            if (line := _summary(run)) != last:
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
                live.update(_fit_rows(run, screen.height))
                time.sleep(_LOOK_SECONDS)
                run = look()
    if run is not None:
        _print_run(run)


def _fit_rows(run: "RunStatus", height: int) -> "RenderableType":
    """Return the rows that fit a screen: failed and running steps first."""
    from rich.console import Group
    from rich.text import Text

    ranked = sorted(run.steps, key=lambda step: _ORDER.index(step.state))
    most = max(height - _HEADER_LINES, 3)
    fitting, used = [], 0
    for step in ranked:
        used += 1 + len(_log_lines(step))
        if used > most:
            break
        fitting.append(step)
    n_hidden = len(ranked) - len(fitting)
    lines = [Text(line, style="dim") for step in fitting for line in _log_lines(step)]
    if n_hidden:
        lines.append(Text(f"… and {n_hidden} more steps", style="dim"))
    return Group(_table(run, fitting), *lines, Text(_summary(run)))


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


def _log_lines(step: "StepStatus") -> list[str]:
    """Return the last log lines of a failed step, to print below the table."""
    if step.state != "failed" or not step.lines:
        return []
    return [f"Last lines of {step.name}:", *(f"    {line}" for line in step.lines)]


def _time(step: "StepStatus") -> str:
    if step.stored:
        return "stored"
    if step.state == "running" and step.began:
        return duration(max(time.time() - step.began, 0.0))
    return "" if step.seconds is None else duration(step.seconds)


def _progress(step: "StepStatus", names: "dict[str, StepStatus]") -> str:
    if step.state in ("failed", "blocked"):
        return step.problem.splitlines()[0] if step.problem else ""
    if step.state == "waiting":
        needed = [names[step_name] for step_name in step.needs if step_name in names]
        waits = [step_name.name for step_name in needed if step_name.state != "done"]
        if not waits:
            return step.problem
        return f"waits for {first_names(waits, _MOST_NAMES)}"
    if step.state == "running" and step.done is not None:
        share = f"{step.done:,.0f} of {step.total:,.0f}" if step.total else f"{step.done:,.0f}"
        return ", ".join(part for part in (f"{share} {step.unit}".strip(), step.note) if part)
    return ""
