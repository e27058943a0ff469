"""Arguments and options that several commands share, each with its sentence."""

from pathlib import Path
from typing import Annotated

import typer

ExperimentFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="An experiment file, such as configs/quickstart.yaml."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Values that replace those of the file: dotted keys ([cyan]train.lr=1e-3[/]), list "
        "items ([cyan]contaminants.0.members=50[/]), variables ([cyan]data=../files[/]).",
        show_default=False,
    ),
]
StoreFolder = Annotated[
    Path,
    typer.Option(
        "--store",
        envvar="SPIKEIN_STORE",
        metavar="DIR",
        help="Where artifacts are kept; several runs may share one.",
    ),
]
RunsFolder = Annotated[
    Path,
    typer.Option(
        "--runs", envvar="SPIKEIN_RUNS", metavar="DIR", help="Where run folders are kept."
    ),
]

STORE = Path("store")
RUNS = Path("runs")
