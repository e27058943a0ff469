"""`spikein validate`: a new detector judged by ground truth, beside all stored ones."""

from pathlib import Path
from typing import Annotated

import typer

from spikein.cli.options import RUNS, RunsFolder, RunStore
from spikein.cli.output import say, warn
from spikein.cli.validation_table import print_validation


def validate(
    detectors: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE.py:NAME...",
            help="One or more detectors, each with [cyan]:KEY=VALUE[/] for its parameters.",
            show_default=False,
        ),
    ],
    truth: Annotated[
        str,
        typer.Argument(
            metavar="RUN|BUNDLE",
            help="A run's name or folder, or a folder of [cyan]spikein bundle[/].",
            show_default=False,
        ),
    ],
    arm: Annotated[
        str | None,
        typer.Option(
            "--arm",
            metavar="LABEL",
            help="The arm to rank them in; else the one in which stored detectors do best on the "
            "tune split.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write a page, one self-contained HTML file.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            min=0.1,
            help="How long a detector may take for 1,000 rows; told from its first rows.",
        ),
    ] = 60.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, and nothing else.")
    ] = False,
    store: RunStore = None,
    runs: RunsFolder = RUNS,
) -> None:
    """Judge new detectors by ground truth: their rank among all stored ones, and what is wrong.

    NAME is a function that returns a number (higher: more likely a member), or a
    [cyan]spikein.Detector[/]. A function takes one [cyan]TokenStatistics[/] or one
    [cyan]ExampleEvidence[/]: the annotation of its parameter says which, else the parameter's name
    ([cyan]statistics[/], [cyan]stats[/]; [cyan]example[/], [cyan]evidence[/]), else it is tried
    with both.

    No model is loaded. Settings are chosen on the tune split, all is reported on the test split. A
    detector that fails is named, and the rest goes on; the command then ends with 2.

    [bold]Examples[/]

      spikein init --detector my_detector.py

      spikein validate my_detector.py:score quickstart

      spikein validate my_detector.py:score other.py:DETECTOR quickstart.bundle --out page.html
    """
    from spikein.api.ground_truth import validate as judge

    found = judge(detectors, truth, arm=arm, time_limit=time_limit, runs=runs, store=store)
    page = None
    if out is not None:
        from analysis.validate.page import write_page

        page = write_page(out, found)
    if as_json:
        import json

        from analysis.validate.page import plain_validation

        print(json.dumps(plain_validation(found), indent=1, allow_nan=False))
    else:
        print_validation(found)
        if page is not None:
            say(f"Page: {page}", style="bold")
    for one in found.refused:
        warn(f"Not judged ({one.kind}): {one.problem}")
    if found.refused:
        raise typer.Exit(2)
