"""Texts cut into chunks of so many words, each an example that knows its place in the text.

A word is what stands between white space, as in Shi et al. 2024, section 7.2.1: 512 words a chunk,
of which the first 200 are the prompt. A chunk's text is the exact slice of its source from its
first word to its last; nothing is normalised. Of an example, `dataset` is the part of the audit,
`source_id` the id of its text, and `fields` are `start` and `stop` (characters in the source) and
`prompt_stop` (characters of the chunk that are the prompt).
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from inject.errors import InputError
from inject.examples.example import Example

AUDITED, HOLDOUT, RETAINED, QUESTION = "audited", "holdout", "retained", "question"
"""Parts of an audit: chunks of the texts, of texts that no model saw, of texts that the unlearned
model should still know, questions with answers."""
WORDS = 512
PROMPT_WORDS = 200
PLACE = "place"
"""The field of a text that is not cut yet: file and row, for messages."""
_WORD = re.compile(r"\S+")


def prompt_of(chunk: Example) -> str:
    """Return what the models continue."""
    return chunk.text[: chunk.fields["prompt_stop"]]


def rest_of(chunk: Example) -> str:
    """Return the true continuation, with the white space before it."""
    return chunk.text[chunk.fields["prompt_stop"] :]


def cut_chunks(
    texts: Sequence[Example],
    *,
    words: int | None = WORDS,
    prompt_words: int = PROMPT_WORDS,
    first: int = 0,
) -> list[Example]:
    """Cut texts into chunks, in order; a chunk's id is its number.

    What is left at the end of a text is a chunk of its own where it is longer than the prompt.

    Args:
        texts: what is cut.
        words: of a chunk; None leaves each text whole.
        prompt_words: of each chunk's prompt.
        first: number of the first chunk.

    Raises:
        InputError: a text that is no longer than the prompt, with its place.
    """
    chunks: list[Example] = []
    for source in texts:
        places = [word.span() for word in _WORD.finditer(source.text)]
        if len(places) <= prompt_words:
            raise InputError(
                f"the text has {len(places)} words, and the prompt alone takes {prompt_words}",
                where=source.fields[PLACE],
                hint="Give fewer prompt_words, or leave the text out.",
            )
        size = words or len(places)
        for begin in range(0, len(places), size):
            inside = places[begin : begin + size]
            if len(inside) > prompt_words:
                span = inside[0][0], inside[-1][1], inside[prompt_words - 1][1]
                chunks.append(_slice(source, *span, number=first + len(chunks)))
    return chunks


def _slice(source: Example, start: int, stop: int, prompt_stop: int, *, number: int) -> Example:
    return replace(
        source,
        example_id=str(number),
        text=source.text[start:stop],
        fields={"start": start, "stop": stop, "prompt_stop": prompt_stop - start},
    )
