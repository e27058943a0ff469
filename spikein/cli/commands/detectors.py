"""`spikein detectors`: the table of detectors."""

from typing import Annotated

import typer

from spikein.cli.output import Column, print_table, warn


def detectors(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE.py:NAME]...",
            help="Detectors of your own files, to be checked and listed, too.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the detectors, their parameters with the paper's values, and what they need.

    Besides the built-in ones these are the detectors of installed packages (entry points of the
    group [cyan]spikein.detectors[/]) and those of the files that are named.

    [bold]Examples[/]

      spikein detectors

      spikein detectors my_detector.py:score
    """
    from detect.detector_table import detector_table

    table = detector_table(files or ())
    print_table(
        [
            Column("name", whole=True),
            Column("parameters"),
            Column("needs"),
            Column("what it measures"),
            Column("source"),
            Column("from"),
        ],
        (
            (row.name, row.parameters, row.needs, row.summary, row.source, row.origin)
            for row in table.rows
        ),
    )
    for warning in table.warnings:
        warn(warning)
