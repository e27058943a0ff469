"""Code that a model or tokenizer takes from another repository of the hub, at a commit of its own.

A configuration may name a class as `owner/name--module.Class` (`auto_map`); transformers then runs
the newest code of that repository, whatever the commit of the model. Where such code may run
(`trust_remote_code`), its repository is resolved like any other, its commit enters the identity,
and the loader takes that commit. A folder that takes code from several other repositories
is refused, as the loader takes one commit only.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from inject.errors import InputError
from inject.hub.resolver import identity_commit
from inject.hub.snapshot import CODE_FILES, fetch_snapshot

_SEPARATOR = "--"


class ForeignCode(NamedTuple):
    """The repository that a folder takes code from, and which commit of it."""

    hub_id: str
    commit: str

    def identity(self) -> dict[str, str]:
        """Return what enters the identity of the model or tokenizer."""
        return {"hub": self.hub_id, "commit": self.commit}


def foreign_code(folder: Path, *, name: str, commit: str | None = None) -> ForeignCode | None:
    """Return the repository that the folder's configurations take code from; None for its own.

    Args:
        folder: of the model or tokenizer.
        name: the model as the user wrote it: a path or a hub id.
        commit: of the folder, where it comes from the hub; code that it takes from the repository
            it lies in is of this commit, too.

    Raises:
        Unreachable: the hub gives no answer, and nothing here knows the commit of the code.
        InputError: several repositories; the hub knows none of that name.
    """
    named = dict(_named_repositories(folder))
    if not named:
        return None
    if len(named) > 1:
        places = "; ".join(f"{hub_id} ({place})" for hub_id, place in sorted(named.items()))
        raise InputError(
            f"it takes code from several other repositories: {places}",
            where=name,
            allowed="code beside the model, or of one other repository",
            hint="Save the model with its code, and give the folder.",
        )
    [hub_id] = named
    if commit is not None and hub_id == name:
        return ForeignCode(hub_id, commit)
    return ForeignCode(hub_id, identity_commit("model", hub_id, None, what=f"code of {hub_id}"))


def trusted_code(folder: Path, *, name: str, commit: str | None = None) -> dict[str, Any]:
    """Return the loader's options for code that may be run; fetches what lies elsewhere.

    Returns:
        `trust_remote_code`, and `code_revision` where code comes from another repository.

    Raises:
        InputError: as `foreign_code` and `fetch_snapshot`.
    """
    code = foreign_code(folder, name=name, commit=commit)
    if code is None:
        return {"trust_remote_code": True}
    fetched = fetch_snapshot(code.hub_id, code.commit, CODE_FILES)
    return {"trust_remote_code": True, "code_revision": fetched.commit}


def _named_repositories(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each repository that an `auto_map` names, with the file and the entry."""
    for path in sorted(folder.glob("*.json")):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        found = values.get("auto_map") if isinstance(values, dict) else None
        for reference in _texts(found):
            if _SEPARATOR in reference:
                yield reference.split(_SEPARATOR)[0], f"{path.name}: auto_map: {reference}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
