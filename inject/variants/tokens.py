"""Variants that are a change of the tokens: some replaced at random, the end cut off."""

import numpy as np
import numpy.typing as npt

from inject import keyed

I64 = npt.NDArray[np.int64]


def truncated(tokens: I64, share: float) -> I64:
    """Return the first tokens, `share` of them, rounded to the nearest whole number."""
    return tokens[: round(share * len(tokens))]


def replaced(
    tokens: I64, share: float, *, allowed: I64, example_id: str, version: int, seed: int
) -> I64:
    """Return the tokens with a share of them replaced, each by another one.

    Args:
        tokens: shape [n].
        share: of the tokens; at least one is replaced.
        allowed: ids to draw from, ascending; no special tokens.
        example_id: keys the draws.
        version: which of the example's versions, from 0.
        seed: the experiment's seed.
    """
    count = max(round(share * len(tokens)), 1)
    place = np.arange(len(tokens), dtype=np.uint64)
    key = keyed.item_key(example_id)
    order = np.argsort(keyed.words(seed, keyed.Stream.REPLACED, key, place, 2 * version))
    chosen = np.sort(order[:count])
    words = keyed.words(seed, keyed.Stream.REPLACED, key, place[chosen], 2 * version + 1)
    # One id fewer to choose from where the token itself is among them; ids behind it move up.
    old = tokens[chosen]
    slot = np.searchsorted(allowed, old)
    own = (slot < len(allowed)) & (allowed[np.minimum(slot, len(allowed) - 1)] == old)
    drawn = keyed.below(len(allowed) - own.astype(np.uint64), words).astype(np.int64)
    result = tokens.copy()
    result[chosen] = allowed[drawn + (own & (drawn >= slot))]
    return result
