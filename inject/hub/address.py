"""Files of data sets on the hub, by address: `hf://datasets/OWNER/NAME@REVISION/PATH`.

PATH is a file, a folder or a glob with `**`, as of local files; without it all files of a known
format are meant. REVISION is a branch, a tag or a commit, `main` where it is left out; a slash in
it is written `%2F`. What an address names is fetched once into the hub library's cache, at one
commit, and read as local files are. Without a network the cache serves what it holds.
"""

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from inject.errors import InputError, Unreachable, did_you_mean, first_names
from inject.hub.resolver import resolve_commit
from inject.hub.snapshot import Snapshot, fetch_snapshot
from inject.reading.row_parsers import PARSERS

SCHEME = "hf://"
_FORM = "hf://datasets/OWNER/NAME[@REVISION][/PATH]"


class HubAddress(NamedTuple):
    """What an address names."""

    id: str
    """Of the data set, `OWNER/NAME`."""
    revision: str | None
    path: str
    """File, folder or glob in it; `` for all."""


def parse_address(text: str) -> HubAddress | None:
    """Return what an address names; None for a text that is no address of the hub.

    Raises:
        InputError: it begins as an address does, and is none.
    """
    if not text.startswith(SCHEME):
        return None
    kind, _, rest = text.removeprefix(SCHEME).partition("/")
    owner, _, rest = rest.partition("/")
    name, _, path = rest.partition("/")
    name, sign, revision = name.partition("@")
    if kind != "datasets" or not owner or not name or (sign and not revision):
        raise InputError("is no address of a data set on the hub", where=text, allowed=_FORM)
    if "@" in owner:
        raise InputError("the revision follows the name", where=text, allowed=_FORM)
    if ".." in path.split("/"):
        raise InputError("'..' leads out of the data set", where=text, allowed=_FORM)
    return HubAddress(f"{owner}/{name}", unquote(revision) or None, path.strip("/"))


def fetch_address(address: HubAddress) -> Snapshot:
    """Fetch what an address names, or find it in the cache; its path is a file, folder or glob.

    Raises:
        Unreachable: the hub gives no answer, and the cache lacks it.
        InputError: no such data set, revision or file, or no access.
    """
    where = f"{SCHEME}datasets/{address.id}"
    commit = resolve_commit("dataset", address.id, address.revision)
    if cached := _cached_file(address, commit):
        return Snapshot(Path(cached), commit, True)

    def check(files: Sequence[str]) -> None:
        if not any(fits(file, address.path) for file in files):
            raise InputError(
                f"the data set has no {address.path or 'file of a known format'!r}."
                f"{did_you_mean(address.path, files)}",
                where=where,
                allowed=first_names(sorted(name for name in files if name[0] != "."), 10),
            )

    patterns = _patterns(address.path)
    fetched = fetch_snapshot(address.id, commit, patterns, kind="dataset", check=check)
    here = [path for path in fetched.path.rglob("*") if path.is_file()]
    if not any(fits(path.relative_to(fetched.path).as_posix(), address.path) for path in here):
        raise Unreachable(
            f"the hub cannot be reached, and {address.path or 'it'!r} is not in the cache of this "
            "machine",
            where=where,
            hint="Try again with a connection, or give a local file.",
        )
    return fetched._replace(path=fetched.path / address.path)


def _patterns(path: str) -> list[str]:
    """Return patterns in which `*` passes slashes, as those of the hub library do."""
    if not path:
        return [f"*{extension}" for extension in PARSERS]
    return list(dict.fromkeys((path, path.replace("**/", ""), f"{path}/*")))


def fits(name: str, path: str) -> bool:
    """Return whether a file is what a file, a folder or a glob names."""
    return any(fnmatch(name, pattern) for pattern in _patterns(path))


def _cached_file(address: HubAddress, commit: str) -> str | None:
    """Return one file's place in the cache, which asks nobody; None for anything else."""
    from huggingface_hub import try_to_load_from_cache

    if not address.path or any(sign in address.path for sign in "*?["):
        return None
    cached = try_to_load_from_cache(address.id, address.path, revision=commit, repo_type="dataset")
    return cached if isinstance(cached, str) else None
