"""`spikein run`, from an experiment file to a report; `spikein report` makes its page again."""

from pathlib import Path
from typing import Annotated

import typer

from spikein.cli.commands.plan import plan
from spikein.cli.options import (
    RUNS,
    STORE,
    ExperimentFile,
    Overrides,
    RunName,
    RunsFolder,
    RunStore,
    StoreFolder,
    option,
)
from spikein.cli.output import say


def run(
    file: ExperimentFile,
    overrides: Overrides = None,
    store: StoreFolder = STORE,
    runs: RunsFolder = RUNS,
    executor: Annotated[
        str | None,
        option(
            "--executor NAME",
            "Run steps by this executor: a name listed by [cyan]spikein executors[/], or "
            "[cyan]FILE.py:NAME[/]. The default is the file's [cyan]executor[/], else this "
            "process.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", "Estimate the run without executing it, as [cyan]plan[/] does.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every step.")] = False,
) -> None:
    """Run an experiment and write its report.

    Steps whose result is in the store do not run again: an interrupted run
    resumes where it stopped, and a second run takes seconds.

    [bold]Examples[/]

      spikein run quickstart

      spikein run real-small data=../data

      spikein run my.yaml train.lr=1e-3 'copies={fixed: 8}' sweep=null

      spikein run my.yaml 'executor={kind: local, workers: 4}' --dry-run

    Exit code 3 means that some steps failed and all others finished.
    """
    from spikein.executors import get_executor

    if dry_run:
        if executor is not None:
            get_executor(executor)
        plan(file, overrides, store)
        return
    from spikein.api.run import run as run_experiment
    from spikein.progress import duration, show_progress

    with show_progress(verbose=verbose) as progress:
        result = run_experiment(
            file,
            overrides=overrides or (),
            store=store,
            runs=runs,
            executor=executor,
            progress=progress,
        )
    say(
        f"{result.built} steps built, {result.stored} from the store, {duration(result.seconds)}.",
        style="dim",
    )
    say(*result.summary)
    say(f"Report: {result.report}", style="bold")


def report(
    run: RunName,
    open_page: Annotated[bool, option("--open", "Also open the page in the browser.")] = False,
    show_protected: Annotated[
        bool,
        option(
            "--show-protected",
            "Show the texts of protected datasets in the pages; do not share such pages.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        option("--out FILE", "Write the page to this file without publishing a run."),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Render the report of a finished run again, and print its path.

    Nothing is trained or scored; only the page is rendered again. A run never
    changes: if the new page differs, it is published as the next run of the
    name. The run's folder records its store and working directory, so the
    command works from anywhere.

    [bold]Examples[/]

      spikein report quickstart

      spikein report runs/quickstart --open

      spikein report /shared/runs/quickstart --out quickstart.html
    """
    from spikein.api.report import render_report
    from spikein.runs.folder import find_run

    page = render_report(
        find_run(runs, run), store_root=store, show_protected=show_protected, out=out
    )
    say(f"Report: {page}", style="bold")
    if open_page:
        typer.launch(page.resolve().as_uri())
