"""Views: the forms of a text for which a model computes token statistics.

A view is a pure function from text to text. `text` is the text itself. Random draws of a view are
keyed by the text and the view, so they never depend on other texts or their order.
"""

import re
from collections.abc import Callable
from functools import partial

import numpy as np

from inject.errors import unknown_name
from inject.keyed import item_key

TEXT = "text"
LOWERCASE = "lowercase"
SWAPPED = tuple(f"swapped-{number}" for number in range(1, 6))
"""Views of the text with some words swapped, five of them."""


def _identity(text: str) -> str:
    return text


def swapped_words(number: int, text: str) -> str:
    """Return a text after max(1, floor(0.3 · words)) swaps of two of its words.

    Blanks separate words and keep their positions; a text of fewer than two words is unchanged. Ye
    et al. 2024 (PAC), section 3.

    Args:
        number: index of the form; each has separate draws.
        text: any text.
    """
    parts = re.split(r"(\s+)", text)
    words = [place for place in range(0, len(parts), 2) if parts[place]]
    if len(words) < 2:
        return text
    random = np.random.Generator(
        np.random.Philox(key=np.array([item_key(text), number], np.uint64))
    )
    for _ in range(max(1, 3 * len(words) // 10)):
        left, right = random.choice(len(words), 2, replace=False)
        first, second = words[left], words[right]
        parts[first], parts[second] = parts[second], parts[first]
    return "".join(parts)


_VIEWS: dict[str, Callable[[str], str]] = {
    TEXT: _identity,
    LOWERCASE: str.lower,
    **{name: partial(swapped_words, number) for number, name in enumerate(SWAPPED, start=1)},
}


def view_names() -> tuple[str, ...]:
    """Return the names of all views."""
    return tuple(_VIEWS)


def view_text(name: str, text: str) -> str:
    """Return `text` as the named view shows it.

    Raises:
        InputError: if the view does not exist.
    """
    if name not in _VIEWS:
        raise unknown_name(f"unknown view {name!r}", name, _VIEWS)
    return _VIEWS[name](text)
