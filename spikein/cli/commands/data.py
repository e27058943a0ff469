"""`spikein data`: fetch the public datasets that the presets read from the Hugging Face hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inject.errors import InputError, unknown_name
from inject.files import human_bytes
from spikein.cli import completion
from spikein.cli.options import argument, folder_path, option
from spikein.cli.output import at_terminal, say, with_noun

if TYPE_CHECKING:
    from inject.public_data.catalogue import DataSet

_FETCH, _LIST = "fetch", "list"


def data(
    action: Annotated[
        str,
        argument(
            "ACTION", "[cyan]fetch[/] or [cyan]list[/].", autocompletion=lambda: [_FETCH, _LIST]
        ),
    ],
    names: Annotated[
        list[str] | None,
        argument(
            "[NAME]...",
            "Datasets, or presets whose data to use; all but large datasets by default.",
            autocompletion=completion.public_data,
        ),
    ] = None,
    to: Annotated[
        Path,
        option(
            "--to DIR",
            "The data folder; presets take it as [cyan]data=DIR[/].",
            show_default=True,
            parser=folder_path,
        ),
    ] = Path("data"),
    accept_terms: Annotated[
        list[str] | None,
        option("--accept-terms NAME", "Agree to the terms of a dataset."),
    ] = None,
) -> None:
    """Fetch the public data that the presets read, at pinned commits; or list it with its licences.

    Each whole file is checked against the hub's digest, converted to the layout
    that presets read, and listed in [cyan]DIR/spikein-data.json[/]. Running the command
    again checks the existing files, reports changed ones and fetches missing
    ones. Only the first rows of large datasets are fetched. Without a network,
    files come from the hub library's cache ([cyan]HF_HOME[/]).
    [cyan]HF_ENDPOINT[/] sets a mirror; [cyan]HF_TOKEN[/] gives access to gated datasets.

    [bold]Examples[/]

      spikein data list

      spikein data fetch frequency

      spikein data fetch boolq redpajama wikipedia --to ../data

      spikein data fetch gpqa --accept-terms gpqa
    """
    from inject.public_data.catalogue import data_sets
    from inject.public_data.fetch import fetch

    if action not in (_FETCH, _LIST):
        raise unknown_name(f"spikein data has no action {action!r}", action, (_FETCH, _LIST))
    chosen = data_sets(_data_names(names or ()), with_large=action == _LIST)
    accepted = {data_set.name for data_set in data_sets(accept_terms)} if accept_terms else set()
    for data_set in chosen:
        if data_set.name in accepted and not data_set.terms:
            raise InputError("has no terms to accept", where=f"--accept-terms {data_set.name}")
    if action == _LIST:
        _print_list(chosen, to)
        return
    agreed = [data_set for data_set in chosen if _agrees(data_set, accepted, to, named=bool(names))]
    for data_set in agreed:
        say(f"{data_set.name}: {data_set.what}. Licence: {data_set.licence}. {data_set.pages}")
    states = fetch(
        agreed,
        to,
        on_file=lambda state: say(
            f"  {state.state:8}  {to / state.path}  {_amount(state.rows, state.size)}"
            + (f"  ({state.note})" if state.note else "")
        ),
    )
    fetched = sum(state.state == "fetched" for state in states)
    say(f"{with_noun(len(states), 'file')} in {to}, {fetched} fetched now.", style="bold")
    say(f"Next: spikein presets, then spikein run NAME data={to}")


def _data_names(names: "list[str] | tuple[()]") -> list[str]:
    """Return names of datasets; a preset's name is replaced by those of its datasets."""
    from inject.builtin_files import EXPERIMENTS
    from spikein.estimates.presets import data_of

    data_names: list[str] = []
    for name in names:
        own = data_of(name) if name in EXPERIMENTS.files() else (name,)
        if not own:
            raise InputError(
                "this preset reads no data folder, so there is nothing to fetch",
                where=name,
                hint=f"`spikein presets {name}` lists what it reads.",
            )
        data_names += own
    return data_names


def _agrees(data_set: "DataSet", accepted: set[str], folder: Path, *, named: bool) -> bool:
    """Return whether a dataset may be fetched; skip one that was not named, with a message.

    Raises:
        InputError: for a dataset requested by name whose terms were not accepted.
    """
    if not data_set.terms or data_set.name in accepted:
        return True
    if all((folder / file.path).exists() for file in data_set.files):
        return True
    if at_terminal():
        say(f"{data_set.name}: {data_set.terms} Licence: {data_set.licence}. {data_set.pages}")
        if typer.confirm("Do you agree?"):
            return True
        problem = "its terms were not agreed to"
    else:
        problem = f"it has terms. {data_set.terms}"
    if named:
        raise InputError(
            problem,
            where=data_set.name,
            hint=f"To agree: --accept-terms {data_set.name}. Its page: {data_set.pages}",
        )
    say(
        f"{data_set.name}: skipped. {data_set.terms} To agree: --accept-terms {data_set.name}",
        style="yellow",
    )
    return False


def _print_list(sets: "tuple[DataSet, ...]", folder: Path) -> None:
    for data_set in sets:
        terms = "; terms to accept" if data_set.terms else ""
        say(f"{data_set.name}: {data_set.what}. Licence: {data_set.licence}{terms}", style="cyan")
        for file in data_set.files:
            part = f"  ({file.part()})" if file.part() else ""
            part += f"  [in {folder}]" if (folder / file.path).is_file() else ""
            source = f"hf://datasets/{file.hub}@{file.commit}/{' '.join(file.sources)}"
            say(f"    {file.path}{part}")
            say(f"      {source}", style="dim")
    say("spikein data fetch NAME --to DIR fetches a dataset, or all datasets of a preset.")


def _amount(rows: int | None, size: int) -> str:
    return f"{rows:,} rows, {human_bytes(size)}" if rows is not None else human_bytes(size)
