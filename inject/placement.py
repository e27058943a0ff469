"""Where copies go: anchors in the clean corpus.

An anchor is a position in the clean token stream; the copy is put before that token. The
anchor of copy c of example e is a keyed draw over the *whole* budget, so it depends on
(seed, e, c) alone. Copies take room, the tail of the background gives way, and an anchor
that fell into the tail is drawn again with the next counter; how often is recorded. Every
anchor that was not re-drawn therefore stays where it is when examples or datasets are
added.

`splice` uses the drawn position as it is. `document` moves it back to the start of the
document that it fell into, so the copy stands between two documents; long documents draw
more copies, as positions are uniform over tokens.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from inject import keyed
from inject.errors import InputError

I64 = npt.NDArray[np.int64]

Policy = Literal["splice", "document"]

_LEAST_BACKGROUND = 0.01
_MOST_DRAWS = 10_000


@dataclass(frozen=True, kw_only=True)
class Anchors:
    """Anchors of many copies, each array of shape [number of copies]."""

    position: I64
    """Position in the clean corpus; the copy stands before this token."""
    redraws: I64
    """How many draws fell into the tail that gave way before this one."""
    tiebreak: keyed.U64
    """Order of copies that share an anchor: the smaller goes first."""


def background_left(budget: int, payload: int) -> int:
    """Return how many background tokens remain in a budget that holds `payload` tokens.

    Raises:
        InputError: if the payload is larger than the budget, or leaves less than 1 % of it.
    """
    if payload > budget:
        raise InputError(
            f"the contaminants need {payload:,} tokens, more than the whole training stream "
            f"of {budget:,}",
            where="corpus.tokens",
            hint="Raise corpus.tokens, or lower the copies or the number of members.",
        )
    left = budget - payload
    if left < budget * _LEAST_BACKGROUND:
        raise InputError(
            f"the contaminants take {payload:,} of {budget:,} tokens and leave less than 1 % "
            "for the background, so that anchors cannot be drawn",
            where="corpus.tokens",
            hint="Raise corpus.tokens, or lower the copies or the number of members.",
        )
    return left


def draw_anchors(
    example_keys: keyed.U64,
    copies: I64,
    *,
    seed: int,
    budget: int,
    background: int,
    policy: Policy,
    document_starts: I64,
) -> Anchors:
    """Draw the anchor of each (example, copy).

    Args:
        example_keys: 64-bit key of each copy's example, shape [n].
        copies: which copy of its example it is, shape [n].
        seed: the arm's seed.
        budget: tokens in the training stream, payload included.
        background: tokens of it that remain for the clean corpus.
        policy: see the module.
        document_starts: ascending document starts in the clean corpus; the first is 0.
    """
    draws = np.zeros(len(copies), dtype=np.int64)
    position = _draw(example_keys, copies, draws, seed, budget)
    outside = np.flatnonzero(position >= background)
    while len(outside):
        draws[outside] += 1
        if int(draws.max()) > _MOST_DRAWS:
            raise InputError(
                f"no anchor below {background:,} found in {_MOST_DRAWS:,} draws over {budget:,}"
            )
        position[outside] = _draw(
            example_keys[outside], copies[outside], draws[outside], seed, budget
        )
        outside = outside[position[outside] >= background]
    if policy == "document":
        position = document_starts[np.searchsorted(document_starts, position, side="right") - 1]
    return Anchors(
        position=position,
        redraws=draws,
        tiebreak=keyed.words(seed, keyed.Stream.SAME_ANCHOR, example_keys, copies),
    )


def _draw(keys: keyed.U64, copies: I64, draws: I64, seed: int, budget: int) -> I64:
    words = keyed.words(seed, keyed.Stream.ANCHOR, keys, copies, draws)
    return keyed.below(budget, words).astype(np.int64)
