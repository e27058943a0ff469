"""`spikein report`: make the page of a run again, and say where it lies."""

from typing import Annotated

import typer

from spikein.cli.options import RUNS, STORE, RunsFolder, StoreFolder
from spikein.cli.output import say


def report(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's name or folder.")],
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser as well.")
    ] = False,
    show_protected: Annotated[
        bool,
        typer.Option(
            "--show-protected",
            help="Show the texts of protected datasets in the page; do not share it then.",
        ),
    ] = False,
    store: StoreFolder = STORE,
    runs: RunsFolder = RUNS,
) -> None:
    """Render the report of a finished run again, and print where it lies.

    Nothing is trained or scored; only the page is made anew.

    [bold]Examples[/]

      spikein report quickstart

      spikein report runs/quickstart --open
    """
    from spikein.run import render_report
    from spikein.runs import find_run

    page = render_report(find_run(runs, run), store_root=store, show_protected=show_protected)
    say(f"Report: {page}", style="bold")
    if open_page:
        typer.launch(page.resolve().as_uri())
