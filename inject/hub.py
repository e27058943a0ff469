"""Datasets on the Hugging Face hub: which commit, and its rows.

A branch name is resolved to a commit once a process, so that what is hashed into an identity
is what is read. Resolving is one request with a short timeout: where the hub is out of reach,
the error comes in seconds and not after the library's retries.
"""

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from inject.errors import InputError, Unreachable
from inject.reading.rows import PlacedRow

_COMMIT = re.compile(r"[0-9a-f]{40}")
_TIMEOUT_SECONDS = 10.0
_HINT = "Check the network, the id and your access to it, or give `path:` with a local file."


class Hub(NamedTuple):
    """The place of a dataset on the hub."""

    id: str
    split: str
    config: str | None = None


@functools.cache
def hub_commit(hub_id: str, revision: str | None) -> str:
    """Return the commit (40 hex digits) that a branch, tag or commit of a dataset names.

    In the hub library's offline mode (HF_HUB_OFFLINE=1) a full commit is taken as it is, so
    that what was downloaded before can be used.

    Raises:
        Unreachable: the hub cannot be reached.
        InputError: it knows no such id or revision.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import (
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if revision and _COMMIT.fullmatch(revision) and constants.HF_HUB_OFFLINE:
        return revision
    try:
        info = HfApi().dataset_info(hub_id, revision=revision, timeout=_TIMEOUT_SECONDS)
    except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise _unloadable(hub_id, error) from error
    except Exception as error:
        failed = _unloadable(hub_id, error)
        raise Unreachable(failed.problem, where=hub_id, hint=failed.hint) from error
    return str(info.sha)


def hub_rows(hub: Hub, *, revision: str | None) -> Iterator[PlacedRow]:
    """Yield the rows of one split, each with its place (`id:split row N`, from 1).

    The library keeps what it downloads in its cache.

    Raises:
        InputError: the hub cannot be reached, or knows no such id, configuration or split.
    """
    import datasets

    try:
        loaded = datasets.load_dataset(
            hub.id, name=hub.config, split=hub.split, revision=hub_commit(hub.id, revision)
        )
    except InputError:
        raise
    except Exception as error:
        raise _unloadable(f"{hub.id}:{hub.split}", error) from error
    for number, values in enumerate(loaded, start=1):
        yield PlacedRow(f"{hub.id}:{hub.split} row {number}", dict(values))


def _unloadable(where: str, error: Exception) -> InputError:
    # The hub libraries raise their own, httpx' and fsspec's errors for one and the same
    # thing; none of them says what to do next.
    lines = str(error).strip().splitlines() or ["no message"]
    return InputError(
        f"cannot be loaded from the hub ({type(error).__name__}: {lines[0][:200]}).",
        where=where,
        hint=_HINT,
    )
