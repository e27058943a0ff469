"""Where documents start in a contaminated stream.

A document of the clean corpus starts where its first token stands, or where the payload starts
that was put before it. A payload that ends with an end token makes a start behind it; one that
begins with a start token, or with an end token, makes one there. In the layout `window` a
document whose start fell among the tokens that gave way starts with the next window.
Cost: one binary search a document.
"""

import numpy as np
import numpy.typing as npt

from inject.corpus.separators import Separator

I64 = npt.NDArray[np.int64]


def document_starts(
    clean_starts: I64,
    anchor: I64,
    length: I64,
    start: I64,
    lead: I64,
    *,
    n_tokens: int,
    window: int | None,
    separator: Separator,
) -> I64:
    """Return the positions at which documents start in the stream, ascending and distinct.

    Args:
        clean_starts: document starts in the clean corpus, ascending from 0.
        anchor: anchors of the payloads in stream order, shape [n].
        length: their lengths, shape [n].
        start: where they start in the stream, shape [n].
        lead: separator tokens before the text of each, shape [n].
        n_tokens: length of the stream.
        window: tokens in a window where payloads shift their own window only, else None.
        separator: what stands around each copy; a payload without any belongs to the document
            that it fell into.
    """
    clean_starts = np.asarray(clean_starts)[: np.searchsorted(clean_starts, n_tokens)]
    before = np.append(0, np.cumsum(length))
    first = np.searchsorted(anchor, clean_starts)
    if window is None:
        moved = clean_starts + before[first]
    else:
        begin = clean_starts // window * window
        shift = before[first] - before[np.searchsorted(anchor, begin)]
        moved = np.minimum(clean_starts + shift, begin + window)
    found = [moved]
    led = lead > 0
    if separator == "end":
        found += [(start + lead)[led], start + length]
    elif separator == "start_end":
        found += [start[led], start + length]
    positions = np.unique(np.concatenate(found))
    return positions[: np.searchsorted(positions, n_tokens)]
