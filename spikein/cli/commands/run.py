"""`spikein run`: from an experiment file to a report."""

from typing import Annotated

from spikein.cli.options import (
    RUNS,
    STORE,
    ExperimentFile,
    Overrides,
    RunsFolder,
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
            "Where steps run: a name that [cyan]spikein executors[/] lists, or "
            "[cyan]FILE.py:NAME[/]; by default what the file says under [cyan]executor[/], else "
            "in this process.",
        ),
    ] = None,
) -> None:
    """Run an experiment and write its report.

    Steps whose result the store holds are not run again: an interrupted run
    goes on where it stopped, and a second run takes seconds.

    [bold]Examples[/]

      spikein run quickstart

      spikein run real-small data=../data

      spikein run my.yaml train.lr=1e-3 'copies={fixed: 8}' sweep=null

      spikein run my.yaml 'executor={kind: local, workers: 4}'

    Exit code 3 says that some steps failed and all others were finished.
    """
    from spikein.api.run import run as run_experiment
    from spikein.progress import duration

    result = run_experiment(
        file, overrides=overrides or (), store=store, runs=runs, executor=executor
    )
    for line in result.summary:
        say(line)
    say(
        f"{result.built} steps built, {result.stored} from the store, {duration(result.seconds)}.",
        style="dim",
    )
    say(f"Report: {result.report}", style="bold")
