"""Which chunks are continued: the suspicious ones, and a keyed sample of the others.

The sample is drawn by the key of (seed, text, place), so that another text adds its own chunks
and moves no other.
"""

from collections.abc import Sequence

import numpy as np

from analysis.unlearning_audit.ratio import Mask
from analysis.unlearning_audit.remembered import Sampled
from analysis.unlearning_audit.text_chunks import Chunk
from inject.keyed import Stream, item_keys, words


def select_chunks(
    chunks: Sequence[Chunk], suspicious: Mask, *, others: int | None, seed: int
) -> Sampled:
    """Return which chunks are continued.

    Args:
        chunks: all of them.
        suspicious: which are; all of these are continued.
        others: how many of the rest; None for all.
        seed: of the draw.
    """
    rest = np.flatnonzero(~suspicious)
    drawn = rest
    if others is not None and others < len(rest):
        names = [f"audited chunk {chunks[at].text_id} {chunks[at].start}" for at in rest.tolist()]
        order = words(seed, Stream.CONTINUATION, item_keys(names))
        drawn = np.sort(rest[np.argsort(order, kind="stable")[:others]])
    weights = np.ones(len(chunks))
    if len(drawn):
        weights[drawn] = len(rest) / len(drawn)
    places = np.sort(np.concatenate([np.flatnonzero(suspicious), drawn]))
    return Sampled(tuple(int(place) for place in places), weights[places], len(rest) - len(drawn))
