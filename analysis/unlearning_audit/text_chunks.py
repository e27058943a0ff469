"""Texts cut into chunks of so many words, each with its place in the text.

A word is what stands between white space, as in Shi et al. 2024, section 7.2.1: 512 words a chunk,
of which the first 200 are the prompt. A chunk's text is the exact slice of its source from its
first word to its last; nothing is normalised.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from inject.errors import InputError

AUDITED, HOLDOUT, RETAINED, QUESTION = "audited", "holdout", "retained", "question"
"""Parts of an audit: chunks of the texts, of texts that no model saw, of texts that the unlearned
model should still know, questions with answers."""
WORDS = 512
PROMPT_WORDS = 200
_WORD = re.compile(r"\S+")


class SourceText(NamedTuple):
    """A text that is audited."""

    text_id: str
    group: str
    """Texts of one group are not independent of one another; a text's id where it is alone."""
    text: str
    place: str
    """File and row, for messages."""
    protected: bool = False
    """A protected text is shown nowhere, only its id."""


class Chunk(NamedTuple):
    """A stretch of a text."""

    chunk: int
    """Its number, over all texts."""
    text_id: str
    group: str
    start: int
    """First character in the source text."""
    stop: int
    text: str
    """The source text from `start` to `stop`."""
    prompt_stop: int
    """Characters of `text` that are the prompt: up to the end of its last word."""
    protected: bool = False
    part: str = AUDITED
    key: str = ""
    """The example whose scores and continuations are its own; its number where this is empty."""

    @property
    def example_id(self) -> str:
        """What its scores and continuations are found by."""
        return self.key or str(self.chunk)

    @property
    def prompt(self) -> str:
        """What the models continue."""
        return self.text[: self.prompt_stop]

    @property
    def rest(self) -> str:
        """The true continuation, with the white space before it."""
        return self.text[self.prompt_stop :]


def cut_chunks(
    texts: Sequence[SourceText],
    *,
    words: int | None = WORDS,
    prompt_words: int = PROMPT_WORDS,
    first: int = 0,
    part: str = AUDITED,
) -> list[Chunk]:
    """Cut texts into chunks, in order.

    What is left at the end of a text is a chunk of its own where it is longer than the prompt.

    Args:
        texts: what is cut.
        words: of a chunk; None leaves each text whole.
        prompt_words: of each chunk's prompt.
        first: number of the first chunk.
        part: what they are.

    Raises:
        InputError: a text that is no longer than the prompt, with its place.
    """
    chunks: list[Chunk] = []
    for source in texts:
        places = [found.span() for found in _WORD.finditer(source.text)]
        if len(places) <= prompt_words:
            raise InputError(
                f"the text has {len(places)} words, and the prompt alone takes {prompt_words}",
                where=source.place,
                hint="Give fewer prompt_words, or leave the text out.",
            )
        size = words or len(places)
        for begin in range(0, len(places), size):
            held = places[begin : begin + size]
            if len(held) <= prompt_words:
                continue
            start, stop = held[0][0], held[-1][1]
            chunks.append(
                Chunk(
                    chunk=first + len(chunks),
                    text_id=source.text_id,
                    group=source.group,
                    start=start,
                    stop=stop,
                    text=source.text[start:stop],
                    prompt_stop=held[prompt_words - 1][1] - start,
                    protected=source.protected,
                    part=part,
                )
            )
    return chunks
