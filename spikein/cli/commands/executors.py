"""`spikein executors`: the table of executors."""

from spikein.cli.output import print_table, warn


def executors() -> None:
    """List the executors that [cyan]spikein run --executor[/] takes, and where they come from.

    Installed packages offer executors under the entry point group [cyan]spikein.executors[/]. An
    executor in a file of your own is named by [cyan]--executor FILE.py:NAME[/].

    [bold]Example[/]

      spikein executors
    """
    from spikein.executors import list_executors

    found = list_executors()
    print_table(
        ("name", "where steps run", "from"),
        ((row.name, row.description, row.origin) for row in found.rows),
    )
    for warning in found.warnings:
        warn(warning)
