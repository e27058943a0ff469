"""`spikein check`: whether an experiment can be run; tells all that is wrong, runs nothing."""

from collections.abc import Sequence

import typer

from spikein.cli.options import STORE, ExperimentFile, Overrides, StoreFolder
from spikein.cli.output import print_error, say


def check(file: ExperimentFile, overrides: Overrides = None, store: StoreFolder = STORE) -> None:
    """Check an experiment file, its data and whether its copies fit; run nothing.

    Everything is looked at that a run needs: every key of every combination of the sweep, the
    files of the background, and the rows, fields and templates of the datasets. Exit code 2 means
    that a run would be refused.

    [bold]Examples[/]

      spikein check my.yaml

      spikein check my.yaml copies.fixed=64 train.context=512
    """
    from spikein.api.plan import plan
    from spikein.cli.estimate_tables import print_unresolved

    result = plan(file, overrides=overrides or (), store=store)
    print_unresolved(result.unresolved)
    for note in dict.fromkeys(one.note for one in result.injection if one.note):
        say(f"Note: {note}")
    refuse(result.problems)
    arms = f"{result.arms} {'arm' if result.arms == 1 else 'arms'}"
    say(f"{file}: nothing wrong was found; {arms}, {len(result.rows)} steps. Nothing was run.")


def refuse(problems: Sequence[str]) -> None:
    """End the command with what a run would refuse; return where there is nothing."""
    if not problems:
        return
    print_error("\n".join(["this cannot be run:", *(f"- {problem}" for problem in problems)]))
    raise typer.Exit(2)
