"""A tokenizer by its name: a folder, or an id of the hub; what identifies it, and loading it."""

from pathlib import Path
from typing import Any

from inject.corpus.tokenizer import AnyTokenizer, load_tokenizer
from inject.errors import InputError
from inject.hub.resolver import UNRESOLVED, identity_commit
from inject.hub.snapshot import (
    CODE_FILES,
    TOKENIZER_FILES,
    fetch_snapshot,
    foreign_code,
    trusted_code,
)
from inject.model_folder import tokenizer_class, tokenizer_files


def load_named_tokenizer(
    path_or_id: str, *, revision: str | None = None, trust_remote_code: bool = False
) -> AnyTokenizer:
    """Load a tokenizer from a folder or, by its id, from the hub.

    Args:
        path_or_id: a folder that exists, or an id such as `gpt2` or `owner/name`.
        revision: branch, tag or commit on the hub.
        trust_remote_code: whether code that comes with the tokenizer may be executed.

    Raises:
        InputError: no such folder, no tokenizer in it, hub not reachable or no such id.
    """
    folder = Path(path_or_id).expanduser()
    commit: str | None = None
    if not folder.is_dir():
        if path_or_id[:1] in "./~" or path_or_id.count("/") > 1 or folder.exists():
            raise InputError(
                "tokenizer: no such folder",
                where=path_or_id,
                allowed="a folder with tokenizer files, or an id of the hub",
            )
        patterns = (*TOKENIZER_FILES, *CODE_FILES) if trust_remote_code else TOKENIZER_FILES
        folder, commit = fetch_snapshot(path_or_id, revision, patterns)
    trusted = trusted_code(folder, name=path_or_id, commit=commit) if trust_remote_code else {}
    return load_tokenizer(str(folder), name=path_or_id if commit else None, **trusted)


def tokenizer_identity(
    path_or_id: str, *, revision: str | None = None, trust_remote_code: bool = False
) -> dict[str, Any]:
    """Return the inputs that determine a tokenizer's ids: its files' digests, or its hub commit.

    Args:
        path_or_id: a folder that exists, or an id of the hub.
        revision: branch, tag or commit on the hub.
        trust_remote_code: whether code from another repository may be executed, whose commit then
            also counts.

    Raises:
        Unreachable: a hub that cannot be reached.
        InputError: a folder without tokenizer files; an id that the hub does not know.
    """
    folder = Path(path_or_id).expanduser()
    if folder.is_dir():
        files = tokenizer_files(folder)
        if not files:
            raise InputError(
                "the folder has no tokenizer", where=path_or_id, allowed="tokenizer.json …"
            )
        identity: dict[str, Any] = {"files": files, "class": tokenizer_class(folder)}
        commit = None
    else:
        commit = identity_commit("model", path_or_id, revision, label=f"tokenizer {path_or_id}")
        identity = {"hub": path_or_id, "commit": commit}
        if trust_remote_code and commit != UNRESOLVED:
            folder, _ = fetch_snapshot(path_or_id, commit, TOKENIZER_FILES)
    if trust_remote_code and commit != UNRESOLVED:
        code = foreign_code(folder, name=path_or_id, commit=commit)
        identity |= {"code": code} if code else {}
    return identity
