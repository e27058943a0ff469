"""Uploads files to a dataset on the hub, as one commit.

The token only comes from the environment (`HF_TOKEN`): a token saved on this machine is not used,
and none is written or shown. Uploaded files are not sent again, so an interrupted upload resumes
where it stopped; the commit at its end shows all files or none, and is refused if the dataset was
changed meanwhile.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from inject.errors import InputError, Unreachable
from inject.hub.resolver import TIMEOUT_SECONDS
from inject.hub.snapshot import hide_progress_without_terminal
from inject.secrets import masked

TOKEN = "HF_TOKEN"
_FORM = "OWNER/NAME, of letters, digits, '-', '_' and '.'"


class RemoteDataset(NamedTuple):
    """A dataset on the hub, before anything is uploaded."""

    id: str
    branch: str
    private: bool
    """Of one that is new: whether it will be."""
    commit: str | None
    """The branch's current commit; None if the dataset or the branch is new."""
    new: bool
    """Whether the dataset is."""
    files: tuple[str, ...]


def inspect_repo(hub_id: str, *, branch: str | None, private: bool) -> RemoteDataset:
    """Query the hub for the repository's current state.

    Args:
        hub_id: `OWNER/NAME`.
        branch: None for `main`.
        private: whether a new dataset is private; an existing public one is rejected.

    Raises:
        Unreachable: the hub gives no answer, or may not be asked.
        InputError: no token, one without access, no id, or a dataset that is public.
    """
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    name = branch or "main"
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", hub_id, re.ASCII):
        page = re.match(r".*/datasets/([^/@]+/[^/@]+)", hub_id)
        hint = f"Did you mean {page[1]}?" if page else None
        raise InputError("is not an id of the hub", where=hub_id or "''", allowed=_FORM, hint=hint)
    api = _api(hub_id)
    with _hub_errors(hub_id, failed="the hub cannot be reached", hint="Check the network."):
        try:
            info = api.dataset_info(hub_id, timeout=TIMEOUT_SECONDS)
        except RepositoryNotFoundError:
            return RemoteDataset(hub_id, name, private, None, True, ())
        if private and not info.private:
            raise InputError(
                "is public already, and --private only applies to a new one",
                where=hub_id,
                hint="Make it private on its page first, or give another id.",
            )
        try:
            info = api.dataset_info(hub_id, revision=name, timeout=TIMEOUT_SECONDS)
        except RevisionNotFoundError:
            return RemoteDataset(hub_id, name, bool(info.private), None, False, ())
    files = tuple(sibling.rfilename for sibling in info.siblings or ())
    return RemoteDataset(hub_id, name, bool(info.private), str(info.sha), False, files)


def upload(
    place: RemoteDataset,
    files: Mapping[str, Path | bytes],
    *,
    delete: Collection[str] = (),
    message: str,
) -> str:
    """Upload files and return the commit (40 hex digits); that which is there if none changed.

    Args:
        place: of `inspect_repo`; a dataset or branch that is new is made.
        files: content, or its local path, by the path in the dataset.
        delete: paths that the commit takes away.
        message: of the commit.

    Raises:
        InputError: a refusal of the hub, or a lost connection; uploaded files are kept.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    hide_progress_without_terminal()
    api = _api(place.id)
    hint = "Uploaded files are kept: run the same command to resume."
    with _hub_errors(place.id, failed="the upload failed", hint=hint):
        if place.new:
            api.create_repo(place.id, repo_type="dataset", private=place.private, exist_ok=True)
        if place.commit is None and place.branch != "main":
            api.create_branch(place.id, branch=place.branch, repo_type="dataset", exist_ok=True)
        done = api.create_commit(
            place.id,
            [
                *(CommitOperationDelete(path_in_repo=name) for name in sorted(delete)),
                *(CommitOperationAdd(name, source) for name, source in sorted(files.items())),
            ],
            commit_message=message,
            repo_type="dataset",
            revision=place.branch,
            parent_commit=place.commit,
        )
    return str(done.oid)


def _api(hub_id: str) -> Any:
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        problem = "nothing is uploaded while HF_HUB_OFFLINE is set"
        raise Unreachable(problem, where=hub_id, hint="Unset it: unset HF_HUB_OFFLINE.")
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise InputError(
            "no token to upload with; a token saved by `hf auth login` is not used",
            where=TOKEN,
            hint="Make one with write access at https://huggingface.co/settings/tokens, and set "
            f"it for this command: {TOKEN}=… spikein push …",
        )
    return HfApi(token=token)


@contextmanager
def _hub_errors(hub_id: str, *, failed: str, hint: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    # Network libraries share no base class of errors across versions of huggingface_hub.
    except Exception as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        reason = masked(" ".join(str(error).split())[:300], os.environ.get(TOKEN))
        problem = f"{failed} ({type(error).__name__}: {reason})"
        if status in (401, 403):
            problem = f"the hub refuses the token in {TOKEN} (status {status})"
            hint = f"It needs write access to {hub_id.partition('/')[0]}: see its settings."
        elif "metadata in README" in reason:
            problem = f"the hub refuses the card ({reason})"
            hint = "Its names of licences: https://huggingface.co/docs/hub/repositories-licenses"
        elif status == 412:
            problem = "the dataset was changed while this was uploaded, so nothing was committed"
            hint = "Look at its current files, and run the command again."
        raise InputError(problem, where=hub_id, hint=hint) from None
