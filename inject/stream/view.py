"""The contaminated stream, composed on the fly from the clean corpus and a plan.

Nothing is copied: N arms cost N plans. A `StreamView` maps a position of the contaminated stream
to a token of the clean corpus or of a payload by binary search over the insertions, and
cuts the stream into windows of `context` tokens; a last partial window is never trained on.

Two layouts: in the layout `flow` a payload shifts everything after it, and the background gives way
at the end of the stream. In the layout `window` it shifts only the tokens after it in its own
window, whose last background tokens give way: every other window is that of the clean twin, byte
for byte.

Reading one window costs two binary searches and one copy per piece.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from inject.corpus.separators import Separator
from inject.keyed import I64

Layout = Literal["flow", "window"]


class TokenSource(Protocol):
    """A stream of clean tokens: a corpus, or a span of one."""

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


class SourceSlice:
    """The part start <= position < stop of a token source, as a separate source."""

    def __init__(self, source: TokenSource, start: int, stop: int) -> None:
        self._source = source
        self._start = start
        self.n_tokens = stop - start
        starts = source.doc_starts
        first, last = np.searchsorted(starts, [start, stop])
        self.doc_starts: I64 = starts[first:last] - start

    def read(self, start: int, stop: int) -> I64:
        """Return the tokens start <= position < stop, counted from the span's start."""
        return self._source.read(self._start + start, self._start + stop)


class RepeatedSource:
    """The first tokens of a source, over and over, as one stream; each time a document starts.

    Args:
        source: the clean tokens.
        tokens: length of the stream; the last repetition is cut there.
        times: how often the unique tokens are laid out, whose number is rounded up.
    """

    def __init__(self, source: TokenSource, *, tokens: int, times: int) -> None:
        self._unique = SourceSlice(source, 0, math.ceil(tokens / times))
        self.n_tokens = tokens
        offsets = np.arange(times, dtype=np.int64)[:, None] * self._unique.n_tokens
        starts = (offsets + self._unique.doc_starts).ravel()
        self.doc_starts: I64 = starts[starts < tokens]

    def read(self, start: int, stop: int) -> I64:
        """Return the tokens start <= position < stop."""
        out = np.empty(stop - start, dtype=np.int64)
        position = start
        while position < stop:
            place = position % self._unique.n_tokens
            end = min(stop, position + self._unique.n_tokens - place)
            out[position - start : end - start] = self._unique.read(place, place + end - position)
            position = end
        return out


def repeated(source: TokenSource, *, tokens: int, times: int) -> TokenSource:
    """Return the clean stream that copies are put into: a source, or its first tokens repeated.

    Args:
        source: the clean tokens.
        tokens: length of the stream.
        times: how often the unique tokens are laid out; 1 returns the source as it is.
    """
    return source if times == 1 else RepeatedSource(source, tokens=tokens, times=times)


@dataclass(frozen=True, kw_only=True)
class Insertions:
    """Payloads and their positions, in any order; each array has shape [number of copies]."""

    anchor: I64
    """Position in the clean stream; the payload precedes it."""
    tiebreak: npt.NDArray[np.uint64]
    """Order of payloads that share an anchor, ascending."""
    offset: I64
    """The start of the payload in `payload`."""
    length: I64
    """Tokens in the payload."""
    lead: I64
    """Tokens of the payload before the copy's text."""
    text_length: I64
    """Tokens of the copy's text."""
    payload: npt.NDArray[np.integer]
    """All payload tokens, one after the other."""

    @staticmethod
    def none() -> "Insertions":
        """No payload at all: the clean twin."""
        empty = np.zeros(0, dtype=np.int64)
        names = ("anchor", "offset", "length", "lead", "text_length", "payload")
        return Insertions(tiebreak=empty.astype(np.uint64), **dict.fromkeys(names, empty))


class CopyPiece(NamedTuple):
    """The part of one copy's text in a span of the stream."""

    copy: int
    """Index into the insertions as they were given."""
    start: int
    """First position in the span."""
    stop: int
    """One past the last position in the span."""
    text_start: int
    """The index of the text's token at `start`."""
    text_stop: int
    """One past the text's last token in the span."""


class StreamView:
    """A stream of `budget` tokens: the first tokens of `source`, with insertions.

    Args:
        source: the clean tokens.
        insertions: the payloads to insert.
        budget: length of the stream.
        context: tokens in a window.
        layout: see the module.
        separator: the separator around the copies.

    Raises:
        ValueError: if payload and background do not add up to the budget, or a window of the
            layout `window` has more payload than tokens.
    """

    def __init__(
        self,
        source: TokenSource,
        insertions: Insertions,
        *,
        budget: int,
        context: int,
        layout: Layout = "flow",
        separator: Separator = "none",
    ) -> None:
        self.n_tokens = budget
        self.context = context
        self.n_windows = budget // context
        self.layout = layout
        self.separator = separator
        self.source = source
        self.insertions = insertions
        self.order = np.lexsort((insertions.tiebreak, insertions.anchor))
        """Indices of the insertions in stream order."""
        anchor = insertions.anchor[self.order]
        length = insertions.length[self.order]
        before = np.cumsum(length) - length
        if layout == "window":
            window = anchor // context
            before -= before[np.searchsorted(window, window)]
        starts = anchor + before
        stops = starts + length
        self._check(starts, stops, length)
        text_starts = starts + insertions.lead[self.order]
        # Searched and indexed one at a time, which a memoryview does faster than an array.
        self._starts = starts.data
        self._stops = stops.data
        self._shift = (before + length).data
        self._offsets = insertions.offset[self.order].data
        self._text_starts = text_starts.data
        self._text_stops = (text_starts + insertions.text_length[self.order]).data
        self._payload = insertions.payload

    def window(self, index: int) -> I64:
        """Return window `index`, shape [context]."""
        return self.read(index * self.context, (index + 1) * self.context)

    def read(self, start: int, stop: int) -> I64:
        """Return the tokens start <= position < stop of the contaminated stream."""
        insertion = bisect_right(self._stops, start)
        starts = self._starts
        if insertion == len(starts) or starts[insertion] >= stop:
            clean, end = self._background(start, stop, insertion)
            if end == stop:
                return self.source.read(clean, clean + stop - start)
        out = np.empty(stop - start, dtype=np.int64)
        position = start
        while position < stop:
            if insertion < len(starts) and starts[insertion] <= position:
                end = min(self._stops[insertion], stop)
                offset = self._offsets[insertion] + position - starts[insertion]
                piece = self._payload[offset : offset + end - position]
                insertion += 1
            else:
                clean, end = self._background(position, stop, insertion)
                piece = self.source.read(clean, clean + end - position)
            out[position - start : end - start] = piece
            position = end
        return out

    def pieces(self, start: int, stop: int) -> Iterator[CopyPiece]:
        """Yield the parts of copies' texts in start <= position < stop, in order."""
        first = bisect_right(self._text_stops, start)
        last = bisect_left(self._text_starts, stop)
        for index in range(first, last):
            text_start, text_stop = self._text_starts[index], self._text_stops[index]
            low, high = max(text_start, start), min(text_stop, stop)
            if low < high:
                yield CopyPiece(
                    copy=int(self.order[index]),
                    start=low - start,
                    stop=high - start,
                    text_start=low - text_start,
                    text_stop=high - text_start,
                )

    def text_starts(self) -> I64:
        """Return the start of each copy's text in the stream, in the order given, shape [n]."""
        starts = np.empty(len(self.order), dtype=np.int64)
        starts[self.order] = self._text_starts
        return starts

    def payload_starts(self) -> I64:
        """Return the start of each copy's payload in the stream, in the order given, shape [n]."""
        starts = np.empty(len(self.order), dtype=np.int64)
        starts[self.order] = self._starts
        return starts

    def document_starts(self) -> I64:
        """Return the positions at which documents start in the stream, ascending and distinct.

        A document of the clean corpus starts at its first token, or at the start of the payload
        that was put before it. After a payload that ends with an end token, a document starts. One
        also starts at a payload that begins with a start or an end token; a payload without a
        separator belongs to the document that it fell into. In the layout `window`, a document
        whose first token was displaced starts with the next window. Cost: one binary search per
        document.
        """
        anchor, lead = self.insertions.anchor[self.order], self.insertions.lead[self.order]
        start, stop = np.asarray(self._starts), np.asarray(self._stops)
        clean_starts = np.asarray(self.source.doc_starts)
        clean_starts = clean_starts[: np.searchsorted(clean_starts, self.n_tokens)]
        before = np.append(0, np.cumsum(stop - start))
        first = np.searchsorted(anchor, clean_starts)
        if self.layout == "flow":
            moved = clean_starts + before[first]
        else:
            begin = clean_starts // self.context * self.context
            shift = before[first] - before[np.searchsorted(anchor, begin)]
            moved = np.minimum(clean_starts + shift, begin + self.context)
        starts = [moved]
        led = lead > 0
        if self.separator == "end":
            starts += [(start + lead)[led], stop]
        elif self.separator == "start_end":
            starts += [start[led], stop]
        positions = np.unique(np.concatenate(starts))
        return positions[: np.searchsorted(positions, self.n_tokens)]

    def _background(self, position: int, stop: int, insertion: int) -> tuple[int, int]:
        """Return the clean position of a background token, and the latest end of its run.

        Args:
            position: of the token, in the stream.
            stop: the end of reading.
            insertion: the first insertion that does not end before `position`.
        """
        end = min(self._starts[insertion], stop) if insertion < len(self._starts) else stop
        if insertion == 0:
            return position, end
        if self.layout == "flow":
            return position - self._shift[insertion - 1], end
        window = position // self.context
        if self._starts[insertion - 1] // self.context != window:
            return position, end
        return position - self._shift[insertion - 1], min(end, (window + 1) * self.context)

    def _check(self, starts: I64, stops: I64, length: I64) -> None:
        if self.layout == "window":
            if (starts // self.context != (stops - 1) // self.context).any():
                raise ValueError("a window contains more payload than it has tokens")
            if len(stops) and stops[-1] > self.n_windows * self.context:
                raise ValueError("a copy is after the last whole window")
            background = self.n_tokens
        else:
            background = self.n_tokens - int(length.sum())
            if len(starts) and int(self.insertions.anchor.max()) > background:
                raise ValueError("an anchor is past the end of the background that fits the budget")
        if background < 0 or background > self.source.n_tokens:
            raise ValueError(
                f"a stream of {self.n_tokens} tokens with {int(length.sum())} of payload needs "
                f"{background} background tokens; the source contains {self.source.n_tokens}"
            )


def clean_view(source: TokenSource, *, tokens: int, context: int) -> StreamView:
    """Return the view of the first `tokens` of a source without any payload."""
    return StreamView(source, Insertions.none(), budget=tokens, context=context)


def concatenated(pieces: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.integer]:
    """Join token arrays; an empty sequence gives an empty array."""
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
