"""Arguments and options that several commands share, each with its sentence."""

from pathlib import Path
from typing import Annotated

import typer

from spikein.cli import completion

ExperimentFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="An experiment file, or the name of one that comes with spikein, such as "
        "[cyan]quickstart[/].",
        autocompletion=completion.experiments,
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Values that replace those of the file: dotted keys ([cyan]train.lr=1e-3[/]), list "
        "items ([cyan]contaminants.0.members=50[/]), variables ([cyan]data=../files[/]).",
        autocompletion=completion.overrides,
        show_default=False,
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's name or folder.",
        autocompletion=completion.runs,
        show_default=False,
    ),
]


def _folder(text: str | Path) -> Path:
    """Return a folder's path; an empty one would mean the working directory, unasked."""
    if not str(text).strip():
        raise typer.BadParameter("is empty. Give a folder; '.' is the working directory.")
    return Path(text)


StoreFolder = Annotated[
    Path,
    typer.Option(
        "--store",
        parser=_folder,
        envvar="SPIKEIN_STORE",
        metavar="DIR",
        help="Where artifacts are kept; several runs may share one.",
    ),
]
RunsFolder = Annotated[
    Path,
    typer.Option(
        "--runs",
        parser=_folder,
        envvar="SPIKEIN_RUNS",
        metavar="DIR",
        help="Where run folders are kept.",
    ),
]
RunStore = Annotated[
    Path | None,
    typer.Option(
        "--store",
        parser=_folder,
        metavar="DIR",
        help="The store of this run, where it is not the one that the run remembers.",
        show_default=False,
    ),
]

STORE = Path("store")
RUNS = Path("runs")

WordReference = Annotated[
    str | None,
    typer.Option(
        "--word-reference",
        metavar="PATH",
        help="A masked or causal model that says which words surprise, for the detector "
        "`info_probe`; by default that of [cyan]--reference[/].",
        show_default=False,
    ),
]
KnowledgeFilter = Annotated[
    str | None,
    typer.Option(
        "--knowledge-filter",
        metavar="PATH",
        help="A model whose guesses `info_probe:filtered=true` leaves out.",
        show_default=False,
    ),
]
Tagger = Annotated[
    str | None,
    typer.Option(
        "--tagger",
        metavar="NAME",
        help="A spaCy pipeline, installed or a folder, that finds named entities, for "
        "[cyan]tag_tab:entities=one_word[/].",
        show_default=False,
    ),
]
Generate = Annotated[
    bool,
    typer.Option(
        "--generate",
        help="Let the model write, for the detectors of [cyan]all[/] that read what it writes.",
    ),
]
