"""Files of datasets on the hub, by address: `hf://datasets/OWNER/NAME@REVISION/PATH`.

PATH is a file, a folder or a glob with `**`, as of local files; without it all files of a known
format are meant. REVISION is a branch, a tag or a commit, `main` by default; a slash in it is
written `%2F`. The files of an address are fetched once into the hub library's cache, at one commit,
and read like local files. Without a network the cached files are used.
"""

from collections.abc import Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from inject.errors import InputError, did_you_mean, first_names
from inject.hub.resolver import resolve_commit
from inject.hub.snapshot import fetch_snapshot
from inject.reading.row_parsers import PARSERS

SCHEME = "hf://"
_FORM = "hf://datasets/OWNER/NAME[@REVISION][/PATH]"


class HubAddress(NamedTuple):
    """A parsed address."""

    id: str
    """Of the dataset, `OWNER/NAME`."""
    revision: str | None
    path: str
    """File, folder or glob in it; `` for all."""


def parse_address(text: str) -> HubAddress | None:
    """Return the parsed address; None for a text that is not an address of the hub.

    Raises:
        InputError: a text that begins as an address does but is not one.
    """
    if not text.startswith(SCHEME):
        return None
    kind, _, remainder = text.removeprefix(SCHEME).partition("/")
    owner, _, remainder = remainder.partition("/")
    name, _, path = remainder.partition("/")
    name, sign, revision = name.partition("@")
    if kind != "datasets" or not owner or not name or (sign and not revision):
        raise InputError("is not an address of a dataset on the hub", where=text, allowed=_FORM)
    if "@" in owner:
        raise InputError("the revision follows the name", where=text, allowed=_FORM)
    if ".." in path.split("/"):
        raise InputError("'..' leads out of the dataset", where=text, allowed=_FORM)
    return HubAddress(f"{owner}/{name}", unquote(revision) or None, path.strip("/"))


def fetch_address(address: HubAddress, *, cache: Path | None = None) -> tuple[Path, str]:
    """Fetch the files of an address, or find them in the cache; return their path and commit.

    The path is that of a file, a folder or a glob, as the address has it.

    Args:
        address: the file to fetch; a file of a cached commit needs no request.
        cache: the folder that keeps the files; None for the hub library's.

    Raises:
        Unreachable: the hub gives no answer, and the cache lacks it.
        InputError: no such dataset, revision or file, or no access.
    """
    from huggingface_hub import try_to_load_from_cache

    commit, path = resolve_commit("dataset", address.id, address.revision), address.path
    if path and not set("*?[") & set(path):
        cached = try_to_load_from_cache(
            address.id, path, cache_dir=cache, revision=commit, repo_type="dataset"
        )
        if isinstance(cached, str):
            return Path(cached), commit
    folder, commit = fetch_snapshot(
        address.id,
        commit,
        _patterns(path),
        kind="dataset",
        check=partial(require_listed, address),
        cache=cache,
    )
    return folder / path, commit


def require_listed(address: HubAddress, files: Sequence[str]) -> None:
    """Refuse an address that names none of the files that the hub lists.

    Raises:
        InputError: names the files that there are.
    """
    if not any(fits(file, address.path) for file in files):
        revision = f"@{quote(address.revision, safe='')}" if address.revision else ""
        raise InputError(
            f"the dataset has no {address.path or 'file of a known format'!r}."
            f"{did_you_mean(address.path, files)}",
            where=f"{SCHEME}datasets/{address.id}{revision}",
            allowed=first_names(sorted(name for name in files if name[0] != "."), 10),
        )


def _patterns(path: str) -> list[str]:
    """Return patterns in which `*` passes slashes, as those of the hub library do."""
    if not path:
        return [f"*{extension}" for extension in PARSERS]
    return list(dict.fromkeys((path, path.replace("**/", ""), f"{path}/*")))


def fits(name: str, path: str) -> bool:
    """Return whether a file, a folder or a glob names a file."""
    return any(fnmatch(name, pattern) for pattern in _patterns(path))
