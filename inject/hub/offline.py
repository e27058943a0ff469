"""Going on without the hub where nothing is run: the mark of a commit that nobody knows.

A run must know the commit of everything it reads from a hub. A plan need not: inside
`without_network` an identity takes the mark `UNRESOLVED` in place of a commit that could not be
looked up, and what was left open is noted with the reason. The store refuses an identity that
holds the mark (`require_resolved`), so nothing is ever filed under a commit that nobody knew.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from inject.errors import SpikeinError, Unreachable

UNRESOLVED = "unresolved hub revision"

_NOTES: ContextVar[dict[str, str] | None] = ContextVar("notes", default=None)


@contextmanager
def without_network() -> Iterator[dict[str, str]]:
    """Let what cannot be reached pass, here and in what is called from here.

    Yields:
        What could not be looked up, with the reason; filled as it happens.
    """
    notes: dict[str, str] = {}
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def mark_unresolved(what: str, reason: Unreachable) -> str:
    """Return the mark of something that could not be looked up, and note it.

    Args:
        what: its name for people, such as `model owner/name`.
        reason: what went wrong.

    Raises:
        Unreachable: `reason`, where a network is needed.
    """
    notes = _NOTES.get()
    if notes is None:
        raise reason
    notes.setdefault(what, reason.problem)
    return UNRESOLVED


def require_resolved(identity: Any, *, where: str) -> None:
    """Refuse to build something whose identity leaves a commit of the hub open.

    Raises:
        SpikeinError: the identity holds the mark.
    """
    if _holds_mark(identity):
        raise SpikeinError(
            f"{where}: the commit of a hub repository that it is made of is not known, so it "
            "cannot be stored. A run looks the commit up again; run the experiment instead of "
            "the plan."
        )


def _holds_mark(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_mark(one) for one in value.values())
    if isinstance(value, list | tuple):
        return any(_holds_mark(one) for one in value)
    return bool(value == UNRESOLVED)
