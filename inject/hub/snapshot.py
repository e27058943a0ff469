"""The files of a model or a tokenizer on the hub, as a folder of this machine.

Fetched are files of the commit that the resolver names, into the hub library's cache. Where the hub
gives no answer, what the cache holds of that commit is used. Cost: the download, once.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from inject.errors import InputError, Unreachable, first_line
from inject.hub.resolver import TIMEOUT_SECONDS, describe_repository, resolve_commit

TOKENIZER_FILES = ("*.json", "*.model", "*.txt", "*.jinja")
"""Configuration, vocabulary and merges, SentencePiece models, chat templates."""
MODEL_FILES = (*TOKENIZER_FILES, "*.safetensors")
CODE_FILES = ("*.py",)


class Snapshot(NamedTuple):
    """Files of a repository at one commit, on this machine."""

    path: Path
    commit: str
    from_cache: bool
    """Whether the hub gave no answer, so that the folder may lack some of the files."""


def fetch_snapshot(
    hub_id: str,
    revision: str | None,
    patterns: Sequence[str],
    *,
    check: Callable[[Sequence[str]], None] | None = None,
) -> Snapshot:
    """Fetch the files of a `model` repository whose names fit the patterns.

    Args:
        hub_id: such as `owner/name`.
        revision: branch, tag or commit; None for the main branch.
        patterns: of the names of the files wanted.
        check: given the names of all files on the hub, before anything is fetched.

    Raises:
        Unreachable: the hub gives no answer, and the cache holds nothing of that commit.
        InputError: no such id or revision, no access, or a download that failed.
    """
    from huggingface_hub import snapshot_download

    commit = resolve_commit("model", hub_id, revision)
    try:
        # By the revision that was resolved, the answer is known already.
        found = describe_repository("model", hub_id, revision)
        if found.commit != commit:
            found = describe_repository("model", hub_id, commit)
    except Unreachable as error:
        return Snapshot(_cached(hub_id, commit, error), commit, True)
    if check is not None:
        check(found.files)
    try:
        path = snapshot_download(
            hub_id, revision=commit, allow_patterns=list(patterns), etag_timeout=TIMEOUT_SECONDS
        )
    except Exception as error:
        raise InputError(
            f"the download from the hub failed ({first_line(error)})",
            where=hub_id,
            hint="What has arrived is kept; try again.",
        ) from error
    return Snapshot(Path(path), commit, False)


def _cached(hub_id: str, commit: str, reason: Unreachable) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(hub_id, revision=commit, local_files_only=True))
    except Exception as error:
        raise Unreachable(
            f"not in the cache, and {reason.problem}", where=hub_id, hint=reason.hint
        ) from error
