"""Further inputs of a window: its labels, and the starts of documents.

`labels` are the ids, and `IGNORED` for tokens without a loss; `position_ids` restart in each
document. Both are pure functions of the view and the window, so that order, world size and restarts
have no influence. Cost: two binary searches and one copy per window; nothing if neither is
required.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from inject.keyed import I64
from inject.stream.view import StreamView
from train.completion import Mask

IGNORED = -100
"""The label of a token without a loss, as transformers has it."""


class WindowInputs:
    """Inputs of each window of a view in addition to its ids.

    Args:
        view: the stream.
        masks: the answer tokens of each copy's text, in the order of the view's insertions; None
            puts the loss on all tokens.
        separate: whether packed documents do not see each other.
    """

    def __init__(self, view: StreamView, *, masks: Sequence[Mask] | None, separate: bool) -> None:
        self._view = view
        self._masks = masks
        self._starts = view.document_starts() if separate else None

    def __call__(self, window: int, ids: I64) -> Mapping[str, I64]:
        """Return the inputs of one window, each of shape [context].

        Args:
            window: its index in the stream.
            ids: its tokens.
        """
        first = window * self._view.context
        labels = ids.copy() if self._masks is None else self._answers(first, ids)
        if self._starts is None:
            return {"labels": labels}
        begins = document_begins(self._starts, first, len(ids))
        # The text before a document does not predict its first token.
        labels[begins] = IGNORED
        return {"labels": labels, "position_ids": document_positions(begins, len(ids))}

    def _answers(self, first: int, ids: I64) -> I64:
        masks = self._masks or ()
        labels = np.full_like(ids, IGNORED)
        for piece in self._view.pieces(first, first + len(ids)):
            inside = slice(piece.start, piece.stop)
            mask = masks[piece.copy][piece.text_start : piece.text_stop]
            labels[inside][mask] = ids[inside][mask]
        return labels


def window_inputs(
    view: StreamView, *, masks: Sequence[Mask] | None, separate: bool
) -> WindowInputs | None:
    """Return the further inputs of windows; None if there are none."""
    if masks is None and not separate:
        return None
    return WindowInputs(view, masks=masks, separate=separate)


def document_begins(starts: I64, first: int, length: int) -> I64:
    """Return the starts of documents within a window; 0 is always one.

    Args:
        starts: positions in the stream at which documents start, ascending.
        first: position of the window's first token.
        length: tokens of the window.
    """
    low, high = np.searchsorted(starts, [first + 1, first + length])
    inside: I64 = starts[low:high] - first
    return np.concatenate([np.zeros(1, dtype=np.int64), inside])


def document_positions(begins: I64, length: int) -> I64:
    """Return the position of each token in its document, or in its part in this window.

    Args:
        begins: starts of documents, ascending from 0.
        length: tokens of the window.
    """
    latest = np.zeros(length, dtype=np.int64)
    latest[begins] = begins
    return np.arange(length, dtype=np.int64) - np.maximum.accumulate(latest)
