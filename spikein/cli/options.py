"""Arguments and options that several commands share, each with its sentence."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from inject.reading.former_names import note_former_name
from spikein.cli import completion

T = TypeVar("T")


def option(
    name: str, sentence: str, *, show_default: bool | str = False, **further: Any
) -> typer.models.OptionInfo:
    """Return an option: its name with what it takes (`--out FILE`), and what it is for."""
    flag, _, metavar = name.partition(" ")
    return typer.Option(
        flag, metavar=metavar or None, help=sentence, show_default=show_default, **further
    )


def former_option(name: str, current: str) -> typer.models.OptionInfo:
    """Return the hidden option of a former name; `replace_former` reads it.

    Args:
        name: with what it takes, as for `option`.
        current: the current name.
    """
    return option(name, f"Former name of {current}.", hidden=True)


def replace_former(value: T, former: T | None, names: tuple[str, str]) -> T:
    """Return the value of an option that has a former name.

    Args:
        value: of the current name.
        former: of the former name; None or empty if it is not given.
        names: the former name and the current one.
    """
    if former is None or former == []:
        return value
    note_former_name("command line", *names)
    return former


def argument(
    metavar: str, sentence: str, *, show_default: bool = False, **further: Any
) -> typer.models.ArgumentInfo:
    """Return an argument: what it takes, and what it is for."""
    return typer.Argument(metavar=metavar, help=sentence, show_default=show_default, **further)


def folder_path(text: str | Path) -> Path:
    """Return a folder's path; refuse an empty one, which would mean the working directory."""
    if not str(text).strip():
        raise typer.BadParameter("is empty. Give a folder; '.' is the working directory.")
    return Path(text)


def page_path(path: Path | None) -> Path | None:
    """Return the path of a page; refuse one that cannot be written, before any work is done."""
    from spikein.store.filesystem import check_file

    if path is not None:
        check_file(path)
    return path


ExperimentFile = Annotated[
    Path,
    argument(
        "FILE",
        "An experiment file, or the name of one that comes with spikein, such as "
        "[cyan]quickstart[/].",
        autocompletion=completion.experiments,
    ),
]
Overrides = Annotated[
    list[str] | None,
    argument(
        "KEY=VALUE",
        "Replace values of the file: dotted keys ([cyan]train.lr=1e-3[/]), list items "
        "([cyan]contaminants.0.members=50[/]), variables ([cyan]data=../files[/]).",
        autocompletion=completion.overrides,
    ),
]
RunName = Annotated[str, argument("RUN", "A run's name or folder.", autocompletion=completion.runs)]
StoreFolder = Annotated[
    Path,
    option(
        "--store DIR",
        "Keep artifacts in this folder; several runs may share one.",
        show_default=True,
        parser=folder_path,
        envvar="SPIKEIN_STORE",
    ),
]
RunsFolder = Annotated[
    Path,
    option(
        "--runs DIR",
        "Keep run folders in this folder.",
        show_default=True,
        parser=folder_path,
        envvar="SPIKEIN_RUNS",
    ),
]
RunStore = Annotated[
    Path | None,
    option(
        "--store DIR",
        "The run's store, if it was moved.",
        parser=folder_path,
    ),
]
AsJson = Annotated[bool, option("--json", "Print only one JSON object.")]
PageFile = Annotated[
    Path | None,
    option("--out FILE", "Write a page, one self-contained HTML file.", callback=page_path),
]

STORE = Path("store")
RUNS = Path("runs")

StepsStore = Annotated[
    str | None,
    option(
        "--store DIR",
        "Cache model scores and generations in this folder, and reuse them.",
        show_default="in the user's cache folder",
    ),
]
StepsExecutor = Annotated[
    str | None,
    option(
        "--executor NAME",
        "Where steps run: a name that [cyan]spikein executors[/] lists, or [cyan]FILE.py:NAME[/].",
        show_default="in this process",
    ),
]
