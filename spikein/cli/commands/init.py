"""`spikein init`: a commented experiment file to start from (the template, or a preset), or a
detector.
"""

import re
from pathlib import Path
from typing import Annotated

import typer

from inject.errors import InputError
from inject.shipped import CONFIGS, EXPERIMENTS
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
        option("--detector FILE.py", "Write a detector to start from in place of an experiment."),
    ] = None,
) -> None:
    """Write a commented experiment file to start from, into this folder; or a detector.

    It is whole as it stands: it can be run at once, without any download. A
    file that is there already is never overwritten. `--from` copies one of the
    presets: small studies, the published experiments, a day on one GPU.

    [bold]Examples[/]

      spikein init

      spikein init copies-and-rates

      spikein init my-learning-rates --from learning-rate

      spikein init --detector my_detector.py
    """
    if detector is not None:
        if source is not None or name != DEFAULT_NAME:
            raise typer.BadParameter("stands alone: no NAME and no --from", param_hint="--detector")
        path = write_detector(detector)
        say(f"Detector: {path}", style="bold")
        say(f"Next: spikein validate {path}:score RUN_OR_BUNDLE")
        return
    path = write_starter(name, Path(), source=source)
    say(f"Experiment file: {path}", style="bold")
    say(f"Next: spikein check {path}, then spikein run {path}")


def write_starter(name: str, folder: Path, *, source: str | None = None) -> Path:
    """Write `NAME.yaml`, a whole experiment of that name, into a folder; return its path.

    Args:
        name: of the experiment, and so of its run's folder.
        folder: where the file goes.
        source: the shipped experiment whose text is taken; None for the template.

    Raises:
        InputError: for a name that cannot name a run, an unknown source, or a file that is there.
    """
    # With the whole schema, which the help need not wait for.
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
    original = TEMPLATE if source is None else _shipped(source)
    text = _renamed(original.read_text(encoding="utf-8"), original.stem, name)
    path = folder / f"{name}.yaml"
    _write_new(path, text, hint="Give another name: spikein init NAME")
    return path


def write_detector(path: Path) -> Path:
    """Write a detector to start from; return its path.

    Raises:
        InputError: its name is not that of a Python file, or there is such a file.
    """
    if path.suffix != ".py" or not path.parent.is_dir():
        problem = "is no name of a Python file" if path.suffix != ".py" else "lies in no folder"
        raise InputError(problem, where=str(path), allowed="FILE.py in a folder that is there")
    text = DETECTOR_TEMPLATE.read_text(encoding="utf-8").replace(DEFAULT_DETECTOR, path.name)
    _write_new(path, text, hint="Give another name: spikein init --detector FILE.py")
    return path


def _write_new(path: Path, text: str, *, hint: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(
            "there is such a file already, and nothing was written", where=str(path), hint=hint
        ) from None


def _shipped(name: str) -> Path:
    known = EXPERIMENTS.files()
    if name in known:
        return known[name]
    if not name.strip():
        raise InputError("is empty", where="--from", allowed=", ".join(known))
    if Path(name).is_file():
        raise InputError(
            f"{name} is a file of your own",
            where="--from",
            allowed=", ".join(known),
            hint=f"Write `extends: {name}` into a new file, and the keys that differ.",
        )
    return EXPERIMENTS.find(name)


def _renamed(text: str, old: str, new: str) -> str:
    """Return a file's text with another name, in its comments' commands, too."""
    old_name = DEFAULT_NAME if old == TEMPLATE.stem else old
    text = re.sub(rf"(?m)^name: {re.escape(old_name)}$", lambda _: f"name: {new}", text)
    text = re.sub(
        rf"(?m)^(#   spikein \w+ ){re.escape(old_name)}(?:\.yaml)?(?=\s|$)",
        lambda match: f"{match.group(1)}{new}.yaml",
        text,
    )
    return text.replace(f"runs/{old_name}/", f"runs/{new}/")
