"""What cannot be looked up without a network, and going on without it where nothing is run.

A run must know the commit of everything it reads from a hub. A plan need not: inside
`without_network` an identity that a hub would have to tell is marked as unresolved, and what was
not looked up is noted. Such an identity never reaches a store.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from inject.errors import Unreachable

UNRESOLVED = "unresolved"

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


def unresolved(what: str, reason: Unreachable) -> str:
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


def note_unresolved(what: str, reason: str) -> bool:
    """Note something that could not be looked up, and return whether anybody takes notes."""
    notes = _NOTES.get()
    if notes is not None:
        notes.setdefault(what, reason)
    return notes is not None
