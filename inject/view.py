"""The contaminated stream, composed on the fly from the clean corpus and a plan.

Nothing is copied: N arms cost N plans. A `View` maps a position of the contaminated stream
to a token of the clean corpus or of a payload by binary search over the insertions, and
cuts the stream into windows of `context` tokens; a last partial window is never trained on.
Reading one window costs two binary searches and one copy a piece.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


class TokenSource(Protocol):
    """A stream of clean tokens: a corpus, or a stretch of one."""

    @property
    def n_tokens(self) -> int:
        """Length of the stream."""
        ...

    @property
    def doc_starts(self) -> I64:
        """Ascending positions at which documents start."""
        ...

    def read(self, start: int, stop: int) -> I64:
        """Return the tokens start <= position < stop."""
        ...


class Stretch:
    """The part start <= position < stop of a token source, as a source of its own."""

    def __init__(self, source: TokenSource, start: int, stop: int) -> None:
        self._source = source
        self._start = start
        self.n_tokens = stop - start
        starts = source.doc_starts
        first, last = np.searchsorted(starts, [start, stop])
        self.doc_starts: I64 = starts[first:last] - start

    def read(self, start: int, stop: int) -> I64:
        """Return the tokens start <= position < stop, counted from the stretch's start."""
        return self._source.read(self._start + start, self._start + stop)


@dataclass(frozen=True, kw_only=True)
class Insertions:
    """Payloads and where they go, in any order; each array has shape [number of copies]."""

    anchor: I64
    """Position in the clean stream before which the payload stands."""
    tiebreak: npt.NDArray[np.uint64]
    """Order of payloads that share an anchor, ascending."""
    offset: I64
    """Where the payload starts in `payload`."""
    length: I64
    """Tokens in the payload."""
    lead: I64
    """Tokens of the payload that stand before the example's text."""
    text_length: I64
    """Tokens of the example's text."""
    payload: npt.NDArray[np.integer]
    """All payload tokens, one after the other."""

    @staticmethod
    def none() -> "Insertions":
        """No payload at all: the clean twin."""
        empty = np.zeros(0, dtype=np.int64)
        return Insertions(
            anchor=empty,
            tiebreak=np.zeros(0, dtype=np.uint64),
            offset=empty,
            length=empty,
            lead=empty,
            text_length=empty,
            payload=np.zeros(0, dtype=np.int64),
        )


class Piece(NamedTuple):
    """The part of one copy's text that lies in a stretch of the stream."""

    copy: int
    """Index into the insertions as they were given."""
    start: int
    """First position in the stretch."""
    stop: int
    """One past the last position in the stretch."""
    text_start: int
    """Which token of the text stands at `start`."""
    text_stop: int
    """One past the text's last token in the stretch."""


class View:
    """A stream of `budget` tokens: the first tokens of `source`, with insertions.

    Raises:
        ValueError: if payload and background do not add up to the budget.
    """

    def __init__(
        self, source: TokenSource, insertions: Insertions, *, budget: int, context: int
    ) -> None:
        self.n_tokens = budget
        self.context = context
        self.n_windows = budget // context
        self._source = source
        self._payload = insertions.payload
        self.order = np.lexsort((insertions.tiebreak, insertions.anchor))
        """Indices of the insertions in stream order."""
        length = insertions.length[self.order]
        ends = np.cumsum(length)
        before = ends - length
        self._starts = insertions.anchor[self.order] + before
        self._stops = self._starts + length
        self._before = np.append(before, ends[-1] if len(ends) else 0)
        self._offsets = insertions.offset[self.order]
        self._text_starts = self._starts + insertions.lead[self.order]
        self._text_stops = self._text_starts + insertions.text_length[self.order]
        background = budget - int(self._before[-1])
        if background < 0 or background > source.n_tokens:
            raise ValueError(
                f"a stream of {budget} tokens with {int(self._before[-1])} of payload needs "
                f"{background} background tokens; the source holds {source.n_tokens}"
            )
        if len(self._starts) and int(insertions.anchor.max()) > background:
            raise ValueError("an anchor lies behind the background that the budget leaves")

    def window(self, index: int) -> I64:
        """Return window `index`, shape [context]."""
        return self.read(index * self.context, (index + 1) * self.context)

    def read(self, start: int, stop: int) -> I64:
        """Return the tokens start <= position < stop of the contaminated stream."""
        out = np.empty(stop - start, dtype=np.int64)
        insertion = int(np.searchsorted(self._stops, start, side="right"))
        position = start
        while position < stop:
            inside = insertion < len(self._starts) and self._starts[insertion] <= position
            if inside:
                end = min(int(self._stops[insertion]), stop)
                offset = int(self._offsets[insertion] + position - self._starts[insertion])
                piece = self._payload[offset : offset + end - position]
                insertion += 1
            else:
                end = stop
                if insertion < len(self._starts):
                    end = min(int(self._starts[insertion]), stop)
                clean = position - int(self._before[insertion])
                piece = self._source.read(clean, clean + end - position)
            out[position - start : end - start] = piece
            position = end
        return out

    def pieces(self, start: int, stop: int) -> list[Piece]:
        """Return the parts of copies' texts that lie in start <= position < stop, in order."""
        first = int(np.searchsorted(self._text_stops, start, side="right"))
        last = int(np.searchsorted(self._text_starts, stop, side="left"))
        found = []
        for index in range(first, last):
            text_start, text_stop = int(self._text_starts[index]), int(self._text_stops[index])
            low, high = max(text_start, start), min(text_stop, stop)
            if low < high:
                found.append(
                    Piece(
                        copy=int(self.order[index]),
                        start=low - start,
                        stop=high - start,
                        text_start=low - text_start,
                        text_stop=high - text_start,
                    )
                )
        return found

    def text_starts(self) -> I64:
        """Return where each copy's text starts in the stream, in the order given, shape [n]."""
        starts = np.empty(len(self.order), dtype=np.int64)
        starts[self.order] = self._text_starts
        return starts


def clean_view(source: TokenSource, *, tokens: int, context: int) -> View:
    """Return the view of the first `tokens` of a source without any payload."""
    return View(source, Insertions.none(), budget=tokens, context=context)


def concatenated(pieces: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.integer]:
    """Join token arrays; an empty sequence gives an empty array."""
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
