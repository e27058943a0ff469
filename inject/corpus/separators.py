"""The tokens around each copy: none, a blank line, end tokens, a start token.

They belong to the payload, not to the copy's text: the exposures and the audit compare only the
text. The text's own tokens never merge with a neighbour's, as copies are put in as tokens.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from inject.corpus.tokenizer import encode_texts, end_token_id
from inject.errors import InputError
from inject.keyed import I64

Separator = Literal["none", "blank_line", "end", "start_end"]
"""The separator around each copy (`inject.plan.settings.Placement.separator`)."""
_NONE = np.zeros(0, dtype=np.int64)


Separation = tuple[Separator, bool]
"""The separator of a placement, and whether each copy is a separate document, between
two others."""


class Separators(NamedTuple):
    """Token ids before and after each copy."""

    kind: Separator
    lead: I64
    trail: I64

    @property
    def tokens(self) -> int:
        """Number of tokens that they add to a copy."""
        return len(self.lead) + len(self.trail)

    def around(self, text: I64) -> I64:
        """Return a text's tokens with the separators around them."""
        return np.concatenate([self.lead, text, self.trail]).astype(np.int64)


NO_SEPARATORS = Separators("none", _NONE, _NONE)


def separators_for(separation: Separation, tokenizer: Any) -> Separators:
    """Return separators in a tokenizer's ids.

    Raises:
        InputError: `start_end` with a tokenizer that has no start token.
    """
    kind, document = separation
    if kind == "none":
        return NO_SEPARATORS
    if kind == "blank_line":
        line = encode_texts(tokenizer, ["\n\n"])[0]
        return Separators(kind, line, line)
    end = end_token_id(tokenizer)
    start = tokenizer.bos_token_id
    if kind == "start_end" and start is None:
        raise InputError(
            "the tokenizer has no start token",
            where="placement.separator",
            allowed="none, blank_line, end",
            hint="Use `end`, or set the tokenizer's `bos_token`.",
        )
    return end_separators(end, start=start if kind == "start_end" else None, document=document)


def text_room(context: int, separations: Sequence[Separation], tokenizer: Any) -> int:
    """Return the most tokens of a text whose copy with separators fits a window.

    Args:
        context: tokens in a window.
        separations: of all copies that must fit inside one window.
        tokenizer: gives the separators.

    Raises:
        InputError: as `separators_for`, or when the separators leave no room.
    """
    widest = max(
        (separators_for(separation, tokenizer).tokens for separation in separations), default=0
    )
    if widest >= context:
        raise InputError(
            f"separators of {widest} tokens leave no room in a window of {context}",
            where="train.context",
            hint="Raise train.context, or use another placement.separator.",
        )
    return context - widest


def end_separators(end: int, *, start: int | None = None, document: bool) -> Separators:
    """Return separators that make a document of a copy.

    Args:
        end: id of the end token.
        start: id of the start token, put before the copy; None for none.
        document: whether the copy is placed between two documents, so that an end token precedes it
            anyway.
    """
    trail = np.array([end], dtype=np.int64)
    if start is not None and start != end:
        return Separators("start_end", np.array([start], dtype=np.int64), trail)
    # One token that both starts and ends documents is put there once.
    return Separators("end", _NONE if document else trail, trail)
