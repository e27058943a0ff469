"""`spikein gc`: remove what no run needs."""

from typing import Annotated

import typer

from spikein.cli.options import RUNS, STORE, RunsFolder, StoreFolder
from spikein.cli.output import Column, print_table, say


def gc(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")
    ] = False,
    damaged: Annotated[
        bool,
        typer.Option(
            "--damaged",
            help="Read every file again, and remove only artifacts that are not what was built, "
            "or were made of such; the next run builds them again.",
        ),
    ] = False,
    store: StoreFolder = STORE,
    runs: RunsFolder = RUNS,
) -> None:
    """Remove artifacts that no run folder needs, and what killed runs left behind.

    What a run folder links to stays, and so does everything it was made from.
    Finished steps of a run that never reached its end go, too.

    [bold]Examples[/]

      spikein gc --dry-run

      spikein gc --damaged
    """
    from spikein.collecting import collect, collect_damaged
    from spikein.disk import human_bytes
    from spikein.runs import referenced
    from spikein.store import Store

    kept = Store(store)
    if damaged:
        found = collect_damaged(kept, dry_run=dry_run)
    else:
        found = collect(kept, keep=referenced(runs), dry_run=dry_run)
    if found.removed:
        print_table(
            [Column("artifact"), Column("size", right=True), Column("why")],
            (
                (one.path.relative_to(store).as_posix(), human_bytes(one.size), one.reason)
                for one in found.removed
            ),
        )
    verb = "would be removed" if dry_run else "removed"
    say(f"{len(found.removed)} {verb} ({human_bytes(found.size)}), {found.kept} kept in {store}/.")
