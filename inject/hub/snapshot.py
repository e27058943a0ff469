"""The files of a model or a tokenizer on the hub, and the code that it takes from elsewhere.

Fetched are files of the commit that the resolver names, into the hub library's cache. If the hub
gives no answer, the cached files of that commit are used. Cost: the download, once.

A configuration may name a class as `owner/name--module.Class` (`auto_map`); transformers then runs
the newest code of that repository, for every commit of the model. If such code may run
(`trust_remote_code`), its repository is resolved like any other, its commit enters the identity,
and the loader takes that commit. A folder that takes code from several other repositories
is rejected, since the loader only takes one commit.
"""

import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from inject.errors import InputError, Unreachable, first_line
from inject.hub.resolver import (
    TIMEOUT_SECONDS,
    RepositoryKind,
    describe_repository,
    gated_repo_error,
    identity_commit,
    resolve_commit,
)
from inject.model_folder import json_object

TOKENIZER_FILES = ("*.json", "*.model", "*.txt", "*.jinja")
"""Configuration, vocabulary and merges, SentencePiece models, chat templates."""
MODEL_FILES = (*TOKENIZER_FILES, "*.safetensors")
CODE_FILES = ("*.py",)
_SEPARATOR = "--"
_OF_THIS_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}
"""Errors that the network does not explain: the command line reports them."""


def fetch_snapshot(
    hub_id: str,
    revision: str | None,
    patterns: Sequence[str],
    *,
    kind: RepositoryKind = "model",
    check: Callable[[Sequence[str]], None] | None = None,
    cache: Path | None = None,
) -> tuple[Path, str]:
    """Fetch the files of a repository whose names fit the patterns.

    Args:
        hub_id: such as `owner/name`.
        revision: branch, tag or commit; None for the main branch.
        patterns: of the names of the files wanted.
        kind: of the repository.
        check: given the names of all files on the hub, before anything is fetched; where the hub
            gives no answer, those in the cache.
        cache: the folder that keeps the files; None for the hub library's.

    Returns:
        The folder of the files on this machine, and their commit.

    Raises:
        Unreachable: the hub gives no answer, and the cache has nothing of that commit, or does
            not pass the check.
        InputError: no such id or revision, no access, or a download that failed.
        OSError: a failed write, such as on a full disk.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError

    commit = resolve_commit(kind, hub_id, revision)
    silence: Unreachable | None = None
    try:
        # By the revision that was resolved, the answer is known already.
        described, files = describe_repository(kind, hub_id, revision)
        if described != commit:
            _, files = describe_repository(kind, hub_id, commit)
    except Unreachable as error:
        silence = error
    else:
        if check is not None:
            check(files)
    hide_progress_without_terminal()
    try:
        path = snapshot_download(
            hub_id,
            repo_type=kind,
            revision=commit,
            allow_patterns=list(patterns),
            cache_dir=cache,
            etag_timeout=TIMEOUT_SECONDS,
            local_files_only=silence is not None,
        )
        if silence is not None and check is not None:
            check([file.relative_to(path).as_posix() for file in Path(path).rglob("*")])
    except GatedRepoError as error:
        raise gated_repo_error(kind, hub_id) from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OF_THIS_MACHINE:
            raise
        if silence is not None:
            raise Unreachable(
                f"not in the cache, and {silence.problem}", where=hub_id, hint=silence.hint
            ) from error
        raise InputError(
            f"the download from the hub failed ({first_line(error)})",
            where=hub_id,
            hint="What has arrived is kept; try again.",
        ) from error
    return Path(path), commit


def hide_progress_without_terminal() -> None:
    """Disable the hub library's progress bars if they would fill a log."""
    from huggingface_hub.utils import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()


def foreign_code(folder: Path, *, name: str, commit: str | None = None) -> dict[str, str] | None:
    """Return the repository that the folder's configurations take code from; None for its own.

    Args:
        folder: of the model or tokenizer.
        name: the model as the user wrote it: a path or a hub id.
        commit: of the folder, if it comes from the hub; code that it takes from its own
            repository is also of this commit.

    Returns:
        Its id (`hub`) and `commit`, which enter the identity of the model or tokenizer.

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
            allowed="code in the model's own repository, or of one other",
            hint="Save the model with its code, and pass the folder.",
        )
    [hub_id] = named
    if commit is None or hub_id != name:
        commit = identity_commit("model", hub_id, None, label=f"code of {hub_id}")
    return {"hub": hub_id, "commit": commit}


def trusted_code(folder: Path, *, name: str, commit: str | None = None) -> dict[str, Any]:
    """Return the loader's options for code that may be run; fetches code of other repositories.

    Returns:
        `trust_remote_code`, and `code_revision` if code comes from another repository.

    Raises:
        InputError: as `foreign_code` and `fetch_snapshot`.
    """
    code = foreign_code(folder, name=name, commit=commit)
    if code is None:
        return {"trust_remote_code": True}
    _, commit = fetch_snapshot(code["hub"], code["commit"], CODE_FILES)
    return {"trust_remote_code": True, "code_revision": commit}


def _named_repositories(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each repository that an `auto_map` names, with the file and the entry."""
    for path in sorted(folder.glob("*.json")):
        for reference in _texts(json_object(path).get("auto_map")):
            if _SEPARATOR in reference:
                yield reference.split(_SEPARATOR)[0], f"{path.name}: auto_map: {reference}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
