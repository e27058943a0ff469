"""`spikein status`: which runs there are, and whether what they rest on is whole."""

import os
from pathlib import Path
from typing import Annotated

import typer

from spikein.cli import completion
from spikein.cli.options import RUNS, STORE, RunsFolder, RunStore
from spikein.cli.output import Column, print_table, say


def status(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|FILE]",
            help="A run's name or folder, or an experiment file; all runs when left out.",
            autocompletion=completion.runs,
            show_default=False,
        ),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """List the runs, or say how far one of them is.

    [bold]Examples[/]

      spikein status

      spikein status quickstart

      spikein status my-experiment.yaml
    """
    if run is None:
        _all(runs)
    elif run.endswith((".yaml", ".yml")):
        _file(Path(run), store or Path(os.environ.get("SPIKEIN_STORE") or STORE))
    else:
        _one(run, runs, store)


def _all(runs: Path) -> None:
    from spikein.runs.status import run_rows

    rows = run_rows(runs)
    if not rows:
        say(f"No runs in {runs}/. Start with: spikein run quickstart")
        return
    print_table(
        [
            Column("run", whole=True),
            Column("finished (UTC)", whole=True),
            Column("artifacts", right=True),
            Column("earlier", right=True),
            Column("state"),
        ],
        (
            (
                row.name,
                row.finished,
                f"{row.whole}/{row.linked}",
                str(row.earlier or ""),
                row.problem or "whole",
            )
            for row in rows
        ),
    )


def _file(file: Path, store: Path) -> None:
    from spikein.api.plan import plan

    result = plan(file, store=store)
    kinds = list(dict.fromkeys(row.kind for row in result.rows))
    print_table(
        [Column("step", whole=True), Column("done", right=True), Column("of", right=True)],
        (
            (
                kind,
                str(sum(row.stored for row in result.rows if row.kind == kind)),
                str(sum(row.kind == kind for row in result.rows)),
            )
            for kind in kinds
        ),
    )
    left = sum(not row.stored for row in result.rows)
    say(f"{result.name}: {left} steps to do." if left else f"{result.name}: every step is done.")


def _one(name: str, runs: Path, store: Path | None) -> None:
    from spikein.runs.folder import find_run
    from spikein.runs.history import earlier_results
    from spikein.runs.status import artifact_rows
    from spikein.store.filesystem import human_bytes

    folder = find_run(runs, name)
    print_table(
        [
            Column("artifact", whole=True),
            Column("size", right=True),
            Column("built (UTC)", whole=True),
            Column("state"),
        ],
        (
            (row.name, human_bytes(row.size), row.created, row.problem or "whole")
            for row in artifact_rows(folder, store, read=True)
        ),
    )
    for earlier, record in earlier_results(folder):
        say(f"Earlier results, finished {record.finished}: {earlier}")
    say(f"Report: {folder / 'report.html'}", style="bold")
