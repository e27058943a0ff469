"""`spikein init`: a commented experiment file to start from."""

from pathlib import Path
from typing import Annotated

import typer

from spikein.cli.completion import shipped_experiments
from spikein.cli.output import say


def init(
    name: Annotated[
        str,
        typer.Argument(metavar="[NAME]", help="Name of the experiment; the file is NAME.yaml."),
    ] = "my-experiment",
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="A shipped experiment to copy, such as [cyan]quickstart[/].",
            autocompletion=shipped_experiments,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a commented experiment file to start from, into this folder.

    It is whole as it stands: it can be run at once, without any download. A
    file that is there already is never overwritten.

    [bold]Examples[/]

      spikein init

      spikein init copies-and-rates

      spikein init my-learning-rates --from learning-rate-small
    """
    from spikein.config.starter import write_starter

    path = write_starter(name, Path(), source=source)
    say(f"Experiment file: {path}", style="bold")
    say(f"Next: spikein check {path}, then spikein run {path}")
