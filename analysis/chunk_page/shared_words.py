"""Which words of a text another one has, too, in runs: so that a page can mark them.

A word is what stands between white space, compared without capitals and punctuation; a single
common word says nothing, so a run has three words at least (fewer only where a text has fewer).
"""

import re
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from detect.generation.text_overlap import plain_words, words_in_runs

SHORTEST_RUN = 3

_WORD = re.compile(r"\S+")


class Part(NamedTuple):
    """A stretch of a text."""

    text: str
    shared: bool
    """Whether the other text has these words, too."""


def mark_shared(text: str, other: str) -> list[Part]:
    """Return a text in parts, which joined give it again, those marked that the other one has."""
    places = list(_WORD.finditer(text))
    words, reference = [_plain(one.group()) for one in places], _plain_words(other)
    size = min(SHORTEST_RUN, len(words), len(reference))
    shared = words_in_runs(words, reference, size) if size else []
    found: list[Part] = []
    end = 0
    for flag, run in groupby(zip(shared, places, strict=False), key=itemgetter(0)):
        if flag:
            run_places = [place for _, place in run]
            # White space between two shared words is marked with them.
            start, stop = run_places[0].start(), run_places[-1].end()
            found += [Part(text[end:start], False), Part(text[start:stop], True)]
            end = stop
    return [part for part in (*found, Part(text[end:], False)) if part.text]


def _plain_words(text: str) -> list[str]:
    return [_plain(word) for word in text.split()]


@lru_cache(maxsize=1 << 16)
def _plain(word: str) -> str:
    """Return a word without capitals and punctuation; one of punctuation alone as it is."""
    return "".join(plain_words(word)) or word
