"""An experiment file that `extends:` another: read, and merged into one document.

Mappings are merged key by key, everything else is replaced, lists as a whole. The file that extends
wins; `null` takes an optional key away. Each key keeps the place where it stands, in whichever
file. The name is never taken over, or the run would replace the other one's: without one, the
file's own name stands. `extends` holds a shipped name, or a path relative to the file.
"""

from collections.abc import Mapping
from os.path import realpath
from pathlib import Path
from typing import Any

from inject.errors import InputError
from inject.shipped import EXPERIMENTS
from spikein.config.validation_errors import plain_type
from spikein.config.yaml_document import Document, KeyPath, read_document

EXTENDS = "extends"


def read_extended(path: Path) -> tuple[Document, list[str]]:
    """Read an experiment file and all that it extends.

    Returns:
        The merged document, without `extends`; and what a reader should know about names.

    Raises:
        InputError: for a file that cannot be read, a circle, or an `extends` that is no text.
        InputErrors: when keys are given twice or are no text.
    """
    notes: list[str] = []
    return _read(path, (path,), notes), notes


def _read(path: Path, chain: tuple[Path, ...], notes: list[str]) -> Document:
    document = read_document(path)
    if EXTENDS not in document.values:
        return document
    where = document.place((EXTENDS,))
    parent = _parent(document.values[EXTENDS], path, where)
    if note := EXPERIMENTS.clash(document.values[EXTENDS], folder=path.parent):
        notes.append(note)
    if realpath(parent) in map(realpath, chain):
        circle = " → ".join(str(one) for one in (*chain, parent))
        raise InputError(
            f"{EXTENDS}: the files extend each other in a circle: {circle}", where=where
        )
    extended = _read(parent, (*chain, parent), notes)
    return _merged(document, extended, name=path.stem)


def _parent(value: Any, path: Path, where: str) -> Path:
    """Return the file that `extends` names."""
    if not isinstance(value, str) or not value:
        raise InputError(
            f"{EXTENDS}: is {plain_type(value)}",
            where=where,
            allowed="one name of a shipped experiment, or a path relative to this file",
        )
    if "${" in value:
        raise InputError(
            f"{EXTENDS}: variables cannot be used here, as they may stand in the other file",
            where=where,
            hint="Write the path out.",
        )
    try:
        return EXPERIMENTS.find(value, folder=path.parent)
    except InputError as error:
        raise InputError(
            f"{EXTENDS}: {error.where}: {error.problem}",
            where=where,
            allowed=error.allowed,
            hint=error.hint,
        ) from None


def _merged(document: Document, extended: Document, *, name: str) -> Document:
    own = {key: value for key, value in document.values.items() if key != EXTENDS}
    under = {key: value for key, value in extended.values.items() if key != "name"}
    places = {path: place for path, place in extended.places.items() if path[0] != "name"}
    values = _merge(under, own, (), places)
    places |= {path: place for path, place in document.places.items() if path[0] != EXTENDS}
    values = {"name": values.pop("name", name), **values}
    return Document(values=values, places=places, name=document.name)


def _merge(
    under: Mapping[str, Any], over: Mapping[str, Any], path: KeyPath, places: dict[KeyPath, str]
) -> dict[str, Any]:
    """Return `over` laid on `under`; forgets the places of what is replaced."""
    merged = dict(under)
    for key, value in over.items():
        here, below = (*path, key), under.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = _merge(below, value, here, places)
            continue
        merged[key] = value
        for old in [old for old in places if old[: len(here)] == here]:
            del places[old]
    return merged
