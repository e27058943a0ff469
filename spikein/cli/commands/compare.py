"""`spikein compare`: what differs between two runs, and by how much their numbers do."""

from pathlib import Path
from typing import Annotated

import typer

from spikein.cli import completion
from spikein.cli.options import RUNS, RunsFolder
from spikein.cli.output import say

_Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's name or folder.",
        autocompletion=completion.runs,
        show_default=False,
    ),
]


def compare(
    first: _Run,
    second: _Run,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write a page, one self-contained HTML file.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, and nothing else.")
    ] = False,
    runs: RunsFolder = RUNS,
) -> None:
    """Compare two finished runs: their settings, what they were made from, and their numbers.

    Settings, code, libraries and artifacts that differ come first; then the AUCs of
    both runs, and, where both scored the same rows of the test split, the paired
    difference with its interval: the second run less the first.

    Arms are matched by the axes that both runs sweep. Nothing is trained or scored, and
    no folder is changed.

    [bold]Examples[/]

      spikein compare quickstart quickstart-bf16

      spikein compare runs/monday /shared/runs/monday --out monday.html

      spikein compare a b --json | jq '.metrics[] | select(.dataset == "all")'
    """
    from spikein.api.comparison import compare_runs, plain_comparison, write_comparison
    from spikein.cli.comparison_table import print_comparison

    found = compare_runs(first, second, runs=runs)
    page = None if out is None else write_comparison(out, found)
    if as_json:
        import json

        print(json.dumps(plain_comparison(found), indent=1, allow_nan=False))
        return
    print_comparison(found)
    if page is not None:
        say(f"Page: {page}", style="bold")
