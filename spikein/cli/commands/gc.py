"""`spikein gc`: remove what no run needs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inject.files import human_bytes
from spikein.cli.options import RUNS, STORE, RunsFolder, StoreFolder, option
from spikein.cli.output import at_terminal, print_table, require_agreement, say, warn

if TYPE_CHECKING:
    from spikein.runs.register import RunRegistry
    from spikein.store.garbage import Collection
    from spikein.store.store import Store


def gc(
    dry_run: Annotated[
        bool, option("--dry-run", "List removable artifacts; delete nothing.")
    ] = False,
    damaged: Annotated[
        bool,
        option(
            "--damaged",
            "Read every file again, and remove only damaged artifacts and those built from "
            "them, without confirmation; the next run rebuilds them.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Remove without confirmation; for scripts.")
    ] = False,
    forget_missing: Annotated[
        bool,
        option(
            "--forget-missing",
            "Treat missing run folders as deleted on purpose, and remove their artifacts.",
        ),
    ] = False,
    store: StoreFolder = STORE,
    runs: RunsFolder = RUNS,
) -> None:
    """Remove artifacts that no run needs, and leftovers of killed runs.

    The store knows the run folders that were made from it, wherever they are.
    Their artifacts are kept, with everything these were built from. Finished
    steps of an unfinished run are removed.

    The command lists what it would remove, then requires confirmation. [cyan]--runs[/]
    finds run folders that were moved. The artifacts of a missing run folder are
    kept until you confirm that it was deleted.

    [bold]Examples[/]

      spikein gc --dry-run

      spikein gc --yes

      spikein gc --damaged
    """
    from spikein.store.filesystem import CHANGE_STORE, STORE_OPTION, check_folder, writing
    from spikein.store.garbage import collect_damaged
    from spikein.store.store import Store

    check_folder(store, STORE_OPTION)
    artifacts = Store(store)
    if not store.is_dir():
        say(f"There is no store in {store}/.")
        return
    # Without a trial write: this command must work on a full disk.
    with writing(store, CHANGE_STORE, "what is left"):
        if damaged:
            collection = collect_damaged(artifacts, dry_run=dry_run)
            _print_garbage(collection, store)
        else:
            collection = _collect_confirmed(
                artifacts, runs, dry_run=dry_run, yes=yes, forget_missing=forget_missing
            )
    say(_summarise_removal(collection, store))


def _collect_confirmed(
    store: "Store", runs: Path, *, dry_run: bool, yes: bool, forget_missing: bool
) -> "Collection":
    """List what no run needs, ask for confirmation, and remove it."""
    from spikein.runs.register import find_roots, update_register
    from spikein.store.garbage import collect

    roots = find_roots(store.root, runs)
    _check_known(roots, store.root)
    forget = _find_deleted_runs(roots, yes=yes or dry_run, forget_missing=forget_missing)
    removable = collect(store, keep=lambda: roots.needed(forget=forget), dry_run=True)
    _print_garbage(removable, store.root)
    if dry_run:
        return removable
    _check_agreed(removable, store, yes)

    def keep() -> set[str]:
        # Read again under the lock, when no run can publish: one may have done so since.
        now = find_roots(store.root, runs)
        update_register(store.root, now, forget=forget)
        return now.needed(forget=forget)

    return collect(store, keep=keep, confirmed=removable)


def _check_known(roots: "RunRegistry", store: Path) -> None:
    """Refuse to collect when no run is known, since everything would be removed.

    Raises:
        InputError: when no run is known.
    """
    from inject.errors import InputError

    if not roots.known:
        raise InputError(
            "no run that was made from this store is known, so everything in it would be removed",
            where=str(store),
            hint="Give the folder of its runs by --runs. To delete a store on purpose, delete "
            f"its folder: chmod -R u+w {store} && rm -r {store}",
        )


def _find_deleted_runs(roots: "RunRegistry", *, yes: bool, forget_missing: bool) -> frozenset[Path]:
    """List the missing run folders; return those that were deleted on purpose."""
    if not roots.missing:
        return frozenset()
    warn("These run folders are missing:")
    warn(*(f"  {run.path} ({len(run.artifacts)} artifacts)" for run in roots.missing))
    missing = frozenset(run.path for run in roots.missing)
    if forget_missing:
        return missing
    if not yes and at_terminal():
        question = "Were they deleted on purpose, so that their artifacts may be removed?"
        return missing if typer.confirm(question) else frozenset()
    warn(
        "Their artifacts are kept. If the folders were moved, give their new place by --runs; if "
        "they were deleted, add --forget-missing."
    )
    return frozenset()


def _check_agreed(removable: "Collection", store: "Store", yes: bool) -> None:
    """Ask before anything is removed.

    Raises:
        InputError: without a terminal, or if another process uses the store.
    """
    from inject.errors import InputError
    from spikein.store.garbage import store_in_use

    if users := store.users():
        raise store_in_use(store, users)
    if yes or not removable.removed:
        return
    amount = f"{len(removable.removed)} ({human_bytes(removable.size)})"
    refusal = InputError(
        f"nothing was removed: {amount} would be, and confirmation needs a terminal or --yes",
        where=str(store.root),
        hint="Add --yes to remove them without confirmation.",
    )
    require_agreement(f"Remove these {amount}?", refusal, declined="Nothing was removed.")


def _print_garbage(collection: "Collection", store: Path) -> None:
    if collection.removed:
        print_table(
            ("artifact", "size", "why"),
            (
                (folder.path.relative_to(store).as_posix(), human_bytes(folder.size), folder.reason)
                for folder in collection.removed
            ),
        )


def _summarise_removal(collection: "Collection", store: Path) -> str:
    verb = "would be removed" if collection.dry_run else "removed"
    removed = f"{len(collection.removed)} {verb} ({human_bytes(collection.size)})"
    return f"{removed}, {collection.kept} kept in {store}/."
