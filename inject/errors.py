"""Errors that a user can act on: the value, its place, the allowed values, the remedy.

Every error that bad input can cause is an `InputError`; the command line prints its text
without a traceback and exits with 2. Anything else that escapes is a defect of ours.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar


class SpikeinError(Exception):
    """Base of all errors raised on purpose by this project."""

    exit_code: ClassVar[int] = 2
    """Exit code of the command line."""


class InputError(SpikeinError):
    """Bad input, with its place and its remedy.

    Args:
        problem: the value and why it cannot be used, one sentence.
        where: file, row or key, as the user wrote it.
        allowed: the values or the form that would have been accepted.
        hint: the next action.
    """

    def __init__(
        self,
        problem: str,
        *,
        where: str | None = None,
        allowed: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.where = where
        self.allowed = allowed
        self.hint = hint
        parts = [f"{where}: {problem}" if where else problem]
        if (allowed or hint) and not problem.endswith((".", "?", "!")):
            parts[0] += "."
        if allowed:
            parts.append(f"Allowed: {allowed}.")
        if hint:
            parts.append(hint)
        super().__init__(" ".join(parts))

    def at(self, place: str) -> "InputError":
        """Return the same problem at another place."""
        return InputError(self.problem, where=place, allowed=self.allowed, hint=self.hint)


class Unreachable(InputError):
    """A resource that is only available over the network, which gave no answer."""


class InputErrors(InputError):
    """Several input errors found in one reading, raised together."""

    def __init__(self, problems: Sequence[InputError | str], *, title: str) -> None:
        self.problems = tuple(str(problem) for problem in problems)
        lines = "\n".join(f"  - {problem}" for problem in self.problems)
        super().__init__(f"{title}\n{lines}")


@contextmanager
def reading(path: object, problem: str = "cannot be read") -> Iterator[None]:
    """Turn the errors of reading a damaged file into one that names it.

    Raises:
        InputError: instead of theirs.
    """
    try:
        yield
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{problem} ({error})", where=str(path)) from error


def did_you_mean(text: str, choices: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` (leading blank), or an empty string when nothing is close."""
    close = difflib.get_close_matches(text, list(choices), n=2, cutoff=0.6)
    if not close:
        return ""
    return f" Did you mean {' or '.join(repr(name) for name in close)}?"


def unknown_name(
    problem: str,
    name: str,
    names: Iterable[str],
    *,
    where: str | None = None,
    allowed: str | None = None,
    none: str | None = None,
    hint: str | None = None,
) -> InputError:
    """Return the error of a name that is not known, with the closest of the known ones.

    Args:
        problem: one sentence, without its full stop.
        name: the unknown name.
        names: the known ones.
        where: file, row or key, as the user wrote it.
        allowed: what is allowed; by default the known names.
        none: what is allowed if there are none.
        hint: the next action.
    """
    names = list(names)
    allowed = allowed or ", ".join(names) or none
    problem = f"{problem}.{did_you_mean(name, names)}"
    return InputError(problem, where=where, allowed=allowed, hint=hint)


def first_names(names: Sequence[str], most: int) -> str:
    """Return the first names of a list on one line: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def first_line(error: BaseException) -> str:
    """Return the kind and the first line of an error of a library."""
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[0][:200]}"
