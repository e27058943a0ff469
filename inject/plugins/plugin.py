"""A loaded plug-in: the object, where it comes from, and the digest of its source."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inject.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """An object that a file or an installed package offers."""

    name: str
    """NAME of `FILE.py:NAME`, or the entry point's name."""
    value: Any
    origin: str
    """Where it comes from: `FILE.py:NAME` as given, or a distribution and its version."""
    digest: str
    """SHA-256 (hex) of the source that was executed, and of which object in it; a part of the
    identity of whatever the plug-in decides. Folders do not enter."""
    code: tuple[str, ...] = ()
    """Modules of our own packages that the source imports, for `Step.code`."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What kind of object a plug-in must be."""

    noun: str
    """For messages: `detector`."""
    accepts: Callable[[Any], bool]
    """Whether an object is of the kind."""
    allowed: str
    """For messages: `a spikein.Detector, or a function from ExampleEvidence to a float`."""

    def check(self, value: Any, *, where: str) -> None:
        """Refuse an object of another kind.

        Raises:
            InputError: with its type, and what is allowed.
        """
        if not self.accepts(value):
            kind = (
                f"the class {value.__name__}"
                if isinstance(value, type)
                else f"an object of type {type(value).__name__}"
            )
            raise InputError(
                f"is {kind}, not {with_article(self.noun)}", where=where, allowed=self.allowed
            )


def with_article(noun: str) -> str:
    """Return a noun with its article: `a detector`, `an executor`."""
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def require_same_source(digest: str | None, named: str | None, *, where: str) -> None:
    """Check that what was loaded again is what a step was named by, wherever the step runs.

    Args:
        digest: of the plug-in; None for what is no plug-in.
        named: the same when the step was named, from its settings.
        where: the plug-in, as the user named it.

    Raises:
        InputError: its source was edited since.
    """
    if digest != named:
        raise InputError(
            "the source was edited since this run was named",
            where=where,
            hint="Run the same command again: what it decides is made by the edited source, and "
            "the rest is kept.",
        )
