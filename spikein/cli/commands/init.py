"""`spikein init`: a commented experiment file to start from (the template, or a preset), or a
detector.
"""

import re
from pathlib import Path
from typing import Annotated

import typer

from inject.builtin_files import CONFIGS, EXPERIMENTS
from inject.errors import InputError
from spikein.cli.completion import shipped_experiments
from spikein.cli.options import argument, option
from spikein.cli.output import say

TEMPLATE = CONFIGS / "templates" / "experiment.yaml"
DETECTOR_TEMPLATE = CONFIGS / "templates" / "detector.py"
DEFAULT_NAME = "my-experiment"
DEFAULT_DETECTOR = "my_detector.py"


def init(
    name: Annotated[
        str,
        argument("[NAME]", "Name of the experiment; the file is NAME.yaml.", show_default=True),
    ] = DEFAULT_NAME,
    source: Annotated[
        str | None,
        option(
            "--from NAME",
            "A shipped experiment to copy, such as [cyan]quickstart[/].",
            autocompletion=shipped_experiments,
        ),
    ] = None,
    detector: Annotated[
        Path | None,
        option("--detector FILE.py", "Write a starter detector instead of an experiment."),
    ] = None,
) -> None:
    """Write a commented experiment file, or a detector, to start from into this folder.

    The file is complete: it runs at once, without any download. An existing file
    is never overwritten. `--from` copies a preset: small studies, the published
    experiments, a day on one GPU.

    [bold]Examples[/]

      spikein init

      spikein init copies-and-rates

      spikein init my-learning-rates --from learning-rate

      spikein init --detector my_detector.py
    """
    if detector is not None:
        if source is not None or name != DEFAULT_NAME:
            raise typer.BadParameter("takes neither NAME nor --from", param_hint="--detector")
        path = write_detector(detector)
        say(f"Detector: {path}", style="bold")
        say(f"Next: spikein validate {path}:score RUN_OR_BUNDLE")
        return
    path = write_starter(name, Path(), source=source)
    say(f"Experiment file: {path}", style="bold")
    say(f"Next: spikein check {path}, then spikein run {path}")


def write_starter(name: str, folder: Path, *, source: str | None = None) -> Path:
    """Write `NAME.yaml`, a complete experiment, into a folder; return its path.

    Args:
        name: the name of the experiment, and so of its run's folder.
        folder: the folder for the file.
        source: the shipped experiment to copy; None for the template.

    Raises:
        InputError: for a name that cannot name a run, an unknown source, or an existing file.
    """
    # This imports the whole schema, which the help does not need.
    from spikein.config.schema import check_name

    name = name.removesuffix(".yaml")
    try:
        check_name(name)
    except ValueError as error:
        raise InputError(str(error), where="NAME", hint="The file is written here.") from None
    if name in EXPERIMENTS.files():
        raise InputError(
            f"{name!r} is the name of an experiment that comes with spikein",
            where="NAME",
            hint=f"Choose another: spikein init my-{name} --from {name}",
        )
    original = TEMPLATE if source is None else _find_shipped(source)
    text = _rename_experiment(original.read_text(encoding="utf-8"), original.stem, name)
    path = folder / f"{name}.yaml"
    _write_new(path, text, hint="Give another name: spikein init NAME")
    return path


def write_detector(path: Path) -> Path:
    """Write a detector to start from; return its path.

    Raises:
        InputError: for a name without `.py`, a missing folder, or an existing file.
    """
    if path.suffix != ".py" or not path.parent.is_dir():
        problem = "is not the name of a Python file"
        if path.suffix == ".py":
            problem = "its folder does not exist"
        raise InputError(problem, where=str(path), allowed="FILE.py in an existing folder")
    text = DETECTOR_TEMPLATE.read_text(encoding="utf-8").replace(DEFAULT_DETECTOR, path.name)
    _write_new(path, text, hint="Give another name: spikein init --detector FILE.py")
    return path


def _write_new(path: Path, text: str, *, hint: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(
            "the file exists already; nothing was written", where=str(path), hint=hint
        ) from None


def _find_shipped(name: str) -> Path:
    experiments = EXPERIMENTS.files()
    if name in experiments:
        return experiments[name]
    if not name.strip():
        raise InputError("is empty", where="--from", allowed=", ".join(experiments))
    if Path(name).is_file():
        raise InputError(
            f"{name} is a file of your own",
            where="--from",
            allowed=", ".join(experiments),
            hint=f"Write `extends: {name}` into a new file, and the keys that differ.",
        )
    return EXPERIMENTS.find(name)


def _rename_experiment(text: str, old: str, new: str) -> str:
    """Return a file's text with another name, also in the commands of its comments."""
    old_name = DEFAULT_NAME if old == TEMPLATE.stem else old
    text = re.sub(rf"(?m)^name: {re.escape(old_name)}$", lambda _: f"name: {new}", text)
    text = re.sub(
        rf"(?m)^(#   spikein \w+ ){re.escape(old_name)}(?:\.yaml)?(?=\s|$)",
        lambda match: f"{match.group(1)}{new}.yaml",
        text,
    )
    return text.replace(f"runs/{old_name}/", f"runs/{new}/")
