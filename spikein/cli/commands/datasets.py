"""`spikein datasets`: the table of datasets that can be spiked in."""

from spikein.cli.output import Column, print_table, say


def datasets() -> None:
    """List the datasets that an experiment can spike in.

    [bold]Example[/]

      spikein datasets
    """
    from inject.examples.datasets.registry import dataset_table

    print_table(
        [
            Column("name", whole=True),
            Column("usual hub id", whole=True),
            Column("protected", whole=True),
            Column("what it is"),
        ],
        (
            (row.name, row.hub or "", "yes" if row.protected else "", row.summary)
            for row in dataset_table()
        ),
    )
    say("The text of a protected dataset appears in no report, log or table.", style="dim")
