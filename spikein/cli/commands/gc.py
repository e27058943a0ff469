"""`spikein gc`: remove what no run needs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inject.files import human_bytes
from spikein.cli.options import RUNS, STORE, RunsFolder, StoreFolder, option
from spikein.cli.output import at_terminal, print_table, require_agreement, say, warn

if TYPE_CHECKING:
    from spikein.runs.register import Roots
    from spikein.store.garbage import Collection
    from spikein.store.store import Store


def gc(
    dry_run: Annotated[bool, option("--dry-run", "Say what would go, and remove nothing.")] = False,
    damaged: Annotated[
        bool,
        option(
            "--damaged",
            "Read every file again, and remove only artifacts that are not what was built, "
            "or were made of such; the next run builds them again. Nothing is asked.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Remove without asking; for scripts.")
    ] = False,
    forget_missing: Annotated[
        bool,
        option(
            "--forget-missing",
            "Run folders that are gone were deleted on purpose: what they rest on may go.",
        ),
    ] = False,
    store: StoreFolder = STORE,
    runs: RunsFolder = RUNS,
) -> None:
    """Remove artifacts that no run needs, and what killed runs left behind.

    The store knows the run folders that were made from it, wherever they lie.
    What they rest on stays, and so does everything it was made from. Finished
    steps of a run that never reached its end go.

    What would go is shown first, and you are asked. A run folder that was
    moved is found by [cyan]--runs[/]; one that is gone keeps its artifacts until
    you say that it was deleted.

    [bold]Examples[/]

      spikein gc --dry-run

      spikein gc --yes

      spikein gc --damaged
    """
    from spikein.store.filesystem import CHANGE_STORE, STORE_OPTION, check_folder, writing
    from spikein.store.garbage import collect_damaged
    from spikein.store.store import Store

    check_folder(store, STORE_OPTION)
    kept = Store(store)
    if not store.is_dir():
        say(f"There is no store in {store}/.")
        return
    # No trial of writing: a full disk is what this command is for.
    with writing(store, CHANGE_STORE, "what is left"):
        if damaged:
            found = collect_damaged(kept, dry_run=dry_run)
            _print_garbage(found, store)
        else:
            found = _collected(kept, runs, dry_run=dry_run, yes=yes, forget_missing=forget_missing)
    say(_total(found, store))


def _collected(
    store: "Store", runs: Path, *, dry_run: bool, yes: bool, forget_missing: bool
) -> "Collection":
    """Show, ask and remove what no run needs."""
    from spikein.runs.register import find_roots, update_register
    from spikein.store.garbage import collect

    roots = find_roots(store.root, runs)
    _check_known(roots, store.root)
    forget = _forgotten(roots, yes=yes or dry_run, forget_missing=forget_missing)
    shown = collect(store, keep=lambda: roots.needed(forget=forget), dry_run=True)
    _print_garbage(shown, store.root)
    if dry_run:
        return shown
    _check_agreed(shown, store, yes)

    def keep() -> set[str]:
        # Anew, now that nobody can publish: a run may have come since.
        now = find_roots(store.root, runs)
        update_register(store.root, now, forget=forget)
        return now.needed(forget=forget)

    return collect(store, keep=keep, shown=shown)


def _check_known(roots: "Roots", store: Path) -> None:
    """Refuse where no run is known, since everything would go.

    Raises:
        InputError: when there is none.
    """
    from inject.errors import InputError

    if not roots.known:
        raise InputError(
            "no run that was made from this store is known, so everything in it would go",
            where=str(store),
            hint="Give the folder of its runs by --runs. To delete a store on purpose, delete "
            f"its folder: chmod -R u+w {store} && rm -r {store}",
        )


def _forgotten(roots: "Roots", *, yes: bool, forget_missing: bool) -> frozenset[Path]:
    """Tell which run folders are gone; return those that were deleted on purpose."""
    if not roots.missing:
        return frozenset()
    warn("These run folders are not where they were:")
    for run in roots.missing:
        warn(f"  {run.path} ({len(run.artifacts)} artifacts)")
    missing = frozenset(run.path for run in roots.missing)
    if forget_missing:
        return missing
    if not yes and at_terminal():
        question = "Were they deleted on purpose, so that what they rest on may go?"
        return missing if typer.confirm(question) else frozenset()
    warn(
        "What they rest on is kept. If they were moved, give their new folder by --runs; if they "
        "were deleted, add --forget-missing."
    )
    return frozenset()


def _check_agreed(shown: "Collection", store: "Store", yes: bool) -> None:
    """Ask before anything is removed.

    Raises:
        InputError: when nobody can be asked, or another process uses the store.
    """
    from inject.errors import InputError
    from spikein.store.garbage import store_in_use

    if users := store.users():
        raise store_in_use(store, users)
    if yes or not shown.removed:
        return
    amount = f"{len(shown.removed)} ({human_bytes(shown.size)})"
    refusal = InputError(
        f"nothing was removed: {amount} would go, and nobody is here to agree",
        where=str(store.root),
        hint="Add --yes to remove them without a question.",
    )
    require_agreement(f"Remove these {amount}?", refusal, declined="Nothing was removed.")


def _print_garbage(found: "Collection", store: Path) -> None:
    if found.removed:
        print_table(
            ("artifact", "size", "why"),
            (
                (one.path.relative_to(store).as_posix(), human_bytes(one.size), one.reason)
                for one in found.removed
            ),
        )


def _total(found: "Collection", store: Path) -> str:
    verb = "would be removed" if found.dry_run else "removed"
    return (
        f"{len(found.removed)} {verb} ({human_bytes(found.size)}), {found.kept} kept in {store}/."
    )
