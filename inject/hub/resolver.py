"""Which commit of the hub an id and a revision stand for: resolved once, the same for all uses.

Datasets, background, tokenizers and models all come here. The hub gets one request with a
time-out of `TIMEOUT_SECONDS`, and a commit that it names is kept for the rest of the process, so
what is hashed into an identity is what is read, even if a branch moves meanwhile. Failures are
not kept. Where the hub gives no answer (no network, HF_HUB_OFFLINE=1), a full commit stands for
itself, and a branch or tag for the commit that the hub library's own cache contains for it, with a
warning; if that has none either, the error reports it. Every look-up is recorded there.

A run must know the commit of everything it reads from a hub. A plan need not: inside
`without_network` an identity takes the mark `UNRESOLVED` in place of a commit that could not be
looked up, and what was left open is noted with the reason. The store refuses an identity that
contains the mark (`require_resolved`), so nothing is ever filed under an unknown commit.
"""

import functools
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

from inject.digest import canonical
from inject.errors import InputError, SpikeinError, Unreachable, first_line
from inject.files import write_text

TIMEOUT_SECONDS = 10.0
"""How long to wait for the hub's first answer."""

RepositoryKind = Literal["dataset", "model"]
"""The kind of a repository; a tokenizer's is `model`."""

UNRESOLVED = "unresolved hub revision"
"""The mark of an unknown commit in an identity of a plan."""

_NOTES: ContextVar[dict[str, str] | None] = ContextVar("notes", default=None)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOCAL_COPIES = {
    "dataset": "Check the id and the network, or give a local copy of the files.",
    "model": "Give a local folder, or try again with a connection.",
}
_log = logging.getLogger(__name__)


def identity_commit(kind: RepositoryKind, hub_id: str, revision: str | None, *, label: str) -> str:
    """Return the commit to be hashed into an identity; a plan without a network gets a mark.

    Args:
        kind: of the repository.
        hub_id: such as `owner/name`.
        revision: branch, tag or commit; None for the main branch.
        label: its name for people, noted in a plan, such as `background owner/name`.

    Raises:
        InputError: as `resolve_commit`.
    """
    try:
        return resolve_commit(kind, hub_id, revision)
    except Unreachable as error:
        return mark_unresolved(label, error)


def resolve_commit(kind: RepositoryKind, hub_id: str, revision: str | None) -> str:
    """Return the commit (40 hex digits) that a branch, tag or commit names.

    Raises:
        Unreachable: the hub gives no answer, and its cache here knows no such revision.
        InputError: the hub knows no such id or revision, or gives no access to it.
    """
    # A commit is the name of a content: there is nothing to look up.
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    return _resolve(kind, hub_id, revision)


@functools.cache
def describe_repository(
    kind: RepositoryKind, hub_id: str, revision: str | None
) -> tuple[str, tuple[str, ...]]:
    """Ask the hub for a repository's commit (40 hex digits) and the names of its files.

    Raises:
        Unreachable: no answer within `TIMEOUT_SECONDS`, or offline mode.
        InputError: the hub knows no such id or revision, or gives no access to it.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    api, local = HfApi(), _LOCAL_COPIES[kind]
    ask = api.dataset_info if kind == "dataset" else api.model_info
    try:
        info = ask(hub_id, revision=revision, timeout=TIMEOUT_SECONDS)
    except HFValidationError as error:
        problem = "neither a folder here nor a hub id; ids are such as 'owner/name'"
        raise InputError(problem, where=hub_id, hint=local) from error
    except GatedRepoError as error:
        raise gated_repo_error(kind, hub_id) from error
    except RevisionNotFoundError as error:
        problem = f"the hub has no revision {revision!r} of it"
        hint = "Its page lists branches, tags and commits; without a revision, main is used."
        raise InputError(problem, where=hub_id, hint=hint) from error
    except RepositoryNotFoundError as error:
        problem = f"neither a folder here nor a {kind} on the hub, or it is private there"
        raise InputError(problem, where=hub_id, hint=local) from error
    # Network libraries share no base class of errors across versions of huggingface_hub.
    except Exception as error:
        requested = revision or "main"
        problem = (
            f"the hub cannot be reached to look up revision {requested!r} ({first_line(error)})"
        )
        raise Unreachable(problem, where=hub_id, hint=local) from error
    files = tuple(sibling.rfilename for sibling in getattr(info, "siblings", None) or ())
    return str(info.sha), files


def gated_repo_error(kind: RepositoryKind, hub_id: str) -> InputError:
    """Return the error for a repository whose conditions have not been accepted."""
    token = "gives no access" if os.environ.get("HF_TOKEN") else "is not set"
    return InputError(
        f"the hub gives access to this {kind} only after its conditions are accepted, and "
        f"HF_TOKEN {token}",
        where=hub_id,
        hint=f"Accept them on https://huggingface.co/{'datasets/' * (kind == 'dataset')}{hub_id}, "
        "and set HF_TOKEN to a token of https://huggingface.co/settings/tokens, or log in with "
        f"`hf auth login`. {_LOCAL_COPIES[kind]}",
    )


@functools.cache
def _resolve(kind: RepositoryKind, hub_id: str, revision: str | None) -> str:
    from huggingface_hub import constants

    name = revision or "main"
    cache = Path(constants.HF_HUB_CACHE, f"{kind}s--{hub_id.replace('/', '--')}")
    # The hub library notes it here, but not for files that are fetched by their commit.
    ref = cache / "refs" / name
    try:
        commit, _ = describe_repository(kind, hub_id, revision)
    except Unreachable as error:
        commit = ""
        with suppress(OSError, ValueError):
            commit = ref.read_text(encoding="utf-8")
        if not _COMMIT.fullmatch(commit):
            raise
        _log.warning(
            "%s %s: %s; taken is commit %s, which the cache on this machine holds as %r",
            kind,
            hub_id,
            error.problem,
            commit,
            name,
        )
    else:
        with suppress(OSError):
            # A commit whose files are not here replaces none whose files may be.
            if (cache / "snapshots" / commit).is_dir() or not ref.exists():
                write_text(ref, commit)
    return commit


@contextmanager
def without_network() -> Iterator[dict[str, str]]:
    """Let unreachable repositories pass, here and in functions called from here.

    Yields:
        The repositories that could not be looked up, with the reason; filled as it happens.
    """
    notes: dict[str, str] = {}
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def mark_unresolved(label: str, reason: Unreachable) -> str:
    """Return the mark of something that could not be looked up, and note it.

    Args:
        label: its name for people, such as `model owner/name`.
        reason: of the failure.

    Raises:
        Unreachable: `reason`, if a network is required.
    """
    notes = _NOTES.get()
    if notes is None:
        raise reason
    notes.setdefault(label, reason.problem)
    return UNRESOLVED


def require_resolved(identity: Any, *, label: str) -> None:
    """Refuse to build something whose identity leaves a commit of the hub open.

    Raises:
        SpikeinError: an identity with the mark.
    """
    if UNRESOLVED in canonical(identity):
        raise SpikeinError(
            f"{label}: it depends on a hub repository whose commit is unknown, so it "
            "cannot be stored. A run looks the commit up again; run the experiment instead of "
            "the plan."
        )
