"""`spikein report`: make the page of a run again, and say where it lies."""

from pathlib import Path
from typing import Annotated

import typer

from spikein.cli.options import RUNS, RunName, RunsFolder, RunStore, option
from spikein.cli.output import say


def report(
    run: RunName,
    open_page: Annotated[bool, option("--open", "Open the page in the browser as well.")] = False,
    show_protected: Annotated[
        bool,
        option(
            "--show-protected",
            "Show the texts of protected datasets in the page; do not share it then.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        option("--out FILE", "Write the page to this file, and publish no run."),
    ] = None,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Render the report of a finished run again, and print where it lies.

    Nothing is trained or scored; only the page is made anew. A run never
    changes: where the page comes out otherwise, it is published as the next
    run of its name. The run's folder remembers its store and where it was
    started: this works from anywhere.

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
