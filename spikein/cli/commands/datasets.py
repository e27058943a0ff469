"""`spikein datasets`: the datasets that can be spiked in, and the sources of the background."""

from spikein.cli.output import print_table, say, warn


def datasets() -> None:
    """List the datasets that an experiment can spike in, and the sources of its background.

    Datasets and sources of installed packages are listed with the package that they come from; one
    in a file of yours needs no listing: write `dataset: FILE.py:NAME` or `kind: FILE.py:NAME`.

    [bold]Example[/]

      spikein datasets
    """
    from inject.corpus.background.registry import source_table
    from inject.examples.datasets.registry import dataset_table

    known, warnings = dataset_table()
    print_table(
        ("name", "usual hub id", "protected", "comes from", "what it is"),
        (
            (name, row.hub or "", "yes" if row.protected else "", origin, row.summary)
            for name, (row, origin, _, _) in known.items()
        ),
    )
    say("The text of a protected dataset appears in no report, log or table.", style="dim")
    sources, source_warnings = source_table()
    print_table(
        ("source of background", "comes from", "what it is"),
        ((row.kind, row.origin, row.summary) for row in sources),
    )
    for warning in (*warnings, *source_warnings):
        warn(warning)
