"""`spikein detectors`: the table of detectors."""

from spikein.cli.output import Column, print_table


def detectors() -> None:
    """List the detectors, their parameters with the paper's values, and what they need.

    [bold]Example[/]

      spikein detectors
    """
    from detect.registry import detector_table

    print_table(
        [
            Column("name", whole=True),
            Column("parameters"),
            Column("needs"),
            Column("what it measures"),
            Column("source"),
        ],
        (
            (row.name, row.parameters, row.needs, row.summary, row.source)
            for row in detector_table()
        ),
    )
