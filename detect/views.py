"""Views: the forms of a text under which a model is asked for token statistics.

A view is a pure function from text to text. `text` is the text itself.
"""

from collections.abc import Callable

from inject.errors import InputError, did_you_mean

TEXT = "text"
LOWERCASE = "lowercase"


def _identity(text: str) -> str:
    return text


_VIEWS: dict[str, Callable[[str], str]] = {TEXT: _identity, LOWERCASE: str.lower}


def view_names() -> tuple[str, ...]:
    """Return the names of all views."""
    return tuple(_VIEWS)


def view_text(name: str, text: str) -> str:
    """Return `text` as the named view shows it.

    Raises:
        InputError: for a view that does not exist.
    """
    if name not in _VIEWS:
        raise InputError(
            f"no view is called {name!r}.{did_you_mean(name, _VIEWS)}",
            allowed=", ".join(_VIEWS),
        )
    return _VIEWS[name](text)
