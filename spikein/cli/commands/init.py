"""`spikein init`: a commented experiment file to start from, or a detector."""

from pathlib import Path
from typing import Annotated

import typer

from spikein.cli.completion import shipped_experiments
from spikein.cli.options import argument, option
from spikein.cli.output import say


def init(
    name: Annotated[
        str,
        argument("[NAME]", "Name of the experiment; the file is NAME.yaml.", show_default=True),
    ] = "my-experiment",
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
    from spikein.config.starter import DEFAULT_NAME, write_detector, write_starter

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
