"""`spikein status`: which runs there are and go on, and whether what they rest on is whole."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spikein.cli import completion
from spikein.cli.options import RUNS, STORE, RunsFolder, RunStore, argument, option
from spikein.cli.output import print_table, say, tell, warn

if TYPE_CHECKING:
    from spikein.executors.live_status import RunStatus


def status(
    run: Annotated[
        str | None,
        argument(
            "[RUN|FILE]",
            "A run's name or folder, or an experiment file; all runs when left out.",
            autocompletion=completion.runs,
        ),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
    watch: Annotated[
        bool,
        option(
            "--watch",
            "Show the steps of a run that goes on until it ends; of the latest when RUN is "
            "left out.",
        ),
    ] = False,
) -> None:
    """List the runs, or say how far one of them is.

    Of a run that goes on, or that ended early, every step is shown: done, running and where,
    waiting and for what, failed with the last lines of its log.

    [bold]Examples[/]

      spikein status

      spikein status quickstart

      spikein status my-experiment.yaml --watch
    """
    place = store or Path(os.environ.get("SPIKEIN_STORE") or STORE)
    file = Path(run) if run and run.endswith((".yaml", ".yml")) else None
    name = _name(file) if file else run
    if watch:
        _watch(place, name)
        return
    going = _latest(place, name) if name else None
    if going is not None and going.state != "finished":
        from spikein.cli.run_table import print_run

        print_run(going)
        if going.state == "running" or run is None:
            return
    if run is None:
        _going_on(place)
        _all(runs)
    elif file is not None:
        _file(file, place)
    elif going is None or going.state == "finished" or (runs / run).exists():
        _one(run, runs, store)


def _name(file: Path) -> str:
    from spikein.api.experiment import read

    return read(file, ()).experiment.name


def _latest(store: Path, name: str | None) -> "RunStatus | None":
    """Return the status of the latest run of a name, one that goes on first."""
    from spikein.executors.live_status import read_statuses

    found = [one for one in read_statuses(store) if name is None or one.name == name]
    going = [one for one in found if one.state == "running"]
    return next(iter([*going, *found]), None)


def _watch(store: Path, name: str | None) -> None:
    from spikein.cli.run_table import watch_run
    from spikein.executors.live_status import read_statuses

    first = _latest(store, name)
    if first is None:
        what = f"no run of {name}" if name else "no run"
        tell(f"The store {store} knows {what}; give its folder by --store.")
        raise typer.Exit(2)
    began = first.began

    def look() -> "RunStatus | None":
        return next((one for one in read_statuses(store) if one.began == began), None)

    watch_run(look)


def _going_on(store: Path) -> None:
    from spikein.cli.run_table import summary
    from spikein.executors.live_status import read_statuses

    for one in read_statuses(store):
        if one.state == "running":
            say(summary(one))


def _all(runs: Path) -> None:
    from spikein.runs.status import run_rows

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


def _one(name: str, runs: Path, store: Path | None) -> None:
    from spikein.runs.folder import find_run
    from spikein.runs.status import artifact_rows, folder_problem
    from spikein.store.filesystem import human_bytes

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
