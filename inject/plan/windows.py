"""The positions of copies that must be inside one window: the window, and the offset in it.

A window and an offset in it are keyed draws that depend only on (seed, example, copy) and on the
copy's own length. A window takes copies as long as they fit in it; if they do not, the copy with
the later key is drawn again with the next counter, and how often is recorded. Copies are laid out
in the order of their offsets, ties by key; an offset beyond the background that a window has left
is moved back to its end. The draws are over the windows of a range of the training
(`inject.plan.training_range`), which may be all.

So a copy that was not drawn again stays in its window when examples or datasets are added, and
at its offset unless another copy came to share its window.
Cost: a few draws per copy, all vectorised; crowded windows are settled one by one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from inject import keyed
from inject.errors import InputError
from inject.keyed import I64
from inject.plan.training_range import TrainingRange

MAX_ROUNDS = 1000


@dataclass(frozen=True, kw_only=True)
class UnplacedCopies:
    """Copies before they have a place, each array of shape [number of copies]."""

    example_keys: keyed.U64
    """64-bit key of each copy's example."""
    numbers: I64
    """Index of the copy among those of its example."""
    lengths: I64
    """Payload tokens, separators included."""
    name: Callable[[int], str]
    """The name of a copy in a message."""
    seed: int
    """The arm's seed, which also decides the order of windows."""
    context: int
    """Tokens in a window."""

    def words(self, stream: keyed.Stream, *draws: I64) -> keyed.U64:
        """Return the random word of each copy."""
        return keyed.words(self.seed, stream, self.example_keys, self.numbers, *draws)

    def take(self, rows: I64) -> "UnplacedCopies":
        """Return only these copies."""
        names = ("example_keys", "numbers", "lengths")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


@dataclass(frozen=True, kw_only=True)
class WindowPlacements:
    """Positions of copies in the contaminated stream, each array of shape [number of copies]."""

    window: I64
    gap: I64
    """Background tokens of the window before the copy."""
    start: I64
    """Position in the contaminated stream."""
    drawn: I64
    """The drawn position; the copy starts there if no other copy shares its window."""
    redraws: I64
    """Number of windows that had no room for it."""


def check_room(copies: UnplacedCopies, allowed_windows: TrainingRange) -> None:
    """Check that every copy fits into a window, and all of them into the windows there are.

    Raises:
        InputError: naming the longest copy, or the room there is.
    """
    lengths, context = copies.lengths, copies.context
    if not len(lengths):
        return
    longest = int(lengths.argmax())
    if lengths[longest] > context:
        raise InputError(
            f"{copies.name(longest)} takes {int(lengths[longest]):,} tokens with its separators "
            f"and does not fit inside one window of {context:,}",
            where="placement",
            allowed="straddle: allow (policy splice or document), or shorter examples",
            hint="Set pool.long_examples to truncate or drop, lower pool.max_tokens, or raise "
            "train.context.",
        )
    windows = allowed_windows.count
    needed = int(lengths.sum())
    if needed > windows * context:
        raise InputError(
            f"the copies need {needed:,} tokens, more than the {windows:,} windows of {context:,} "
            f"tokens ({windows * context:,}) that are allowed for them",
            where="corpus.tokens" if allowed_windows.whole else "placement",
            hint="Widen placement.between or placement.stretch, raise corpus.tokens, or lower "
            "copies or members.",
        )


def draw_in_windows(copies: UnplacedCopies, allowed_windows: TrainingRange) -> WindowPlacements:
    """Draw a window and an offset for each copy; `check_room` has passed.

    Raises:
        InputError: when the windows are so full that no place is found.
    """
    draws, window, offset = (np.zeros_like(copies.numbers) for _ in range(3))
    tiebreak = copies.words(keyed.Stream.SAME_ANCHOR)
    pending = np.arange(len(draws))
    for _ in range(MAX_ROUNDS):
        waiting = copies.take(pending)
        places = drawn_places(waiting, draws[pending], allowed_windows)
        window[pending], offset[pending] = places
        pending = _without_room(pending, window, tiebreak, copies)
        if not len(pending):
            return _laid_out(window, offset, draws, tiebreak, copies)
        draws[pending] += 1
    room = allowed_windows.count * copies.context
    raise InputError(
        f"no window with room was found for {len(pending):,} copies in {MAX_ROUNDS:,} draws: "
        f"the copies fill {copies.lengths.sum() / room:.0%} of their allowed windows",
        where="placement",
        hint="Widen placement.between or placement.stretch, raise corpus.tokens, or lower the "
        "copies.",
    )


def drawn_places(
    copies: UnplacedCopies, draws: I64, allowed_windows: TrainingRange
) -> tuple[I64, I64]:
    """Return each copy's drawn window, and its position in it without other copies."""
    window = allowed_windows.draw(copies.seed, copies.example_keys, copies.numbers, draws)
    offsets = copies.words(keyed.Stream.OFFSET, draws)
    return window, keyed.below(copies.context - copies.lengths + 1, offsets).astype(np.int64)


def _without_room(pending: I64, window: I64, tiebreak: keyed.U64, copies: UnplacedCopies) -> I64:
    """Return the copies that do not fit, in the windows that pending copies were drawn to."""
    lengths, context = copies.lengths, copies.context
    contested = np.flatnonzero(np.isin(window, window[pending]))
    contested = contested[np.lexsort((tiebreak[contested], window[contested]))]
    groups = np.flatnonzero(np.diff(window[contested], prepend=-1))
    totals = np.add.reduceat(lengths[contested], groups)
    stops = np.append(groups[1:], len(contested))
    losers: list[int] = []
    for group in np.flatnonzero(totals > context):
        room = context
        for copy in contested[groups[group] : stops[group]]:
            if lengths[copy] <= room:
                room -= int(lengths[copy])
            else:
                losers.append(int(copy))
    return np.array(losers, dtype=np.int64)


def _laid_out(
    window: I64, offset: I64, draws: I64, tiebreak: keyed.U64, copies: UnplacedCopies
) -> WindowPlacements:
    """Put the copies of each window in the order of their offsets."""
    lengths, context = copies.lengths, copies.context
    # One window's copies are adjacent in both orders, so one sum over them serves both.
    by_window = np.argsort(window, kind="stable")
    copy_tokens = np.empty(len(window), dtype=np.int64)
    first = np.searchsorted(window[by_window], window[by_window], side="left")
    last = np.searchsorted(window[by_window], window[by_window], side="right")
    ends = np.append(0, np.cumsum(lengths[by_window]))
    copy_tokens[by_window] = ends[last] - ends[first]
    gap = np.minimum(offset, context - copy_tokens)
    order = np.lexsort((tiebreak, gap, window))
    before = np.cumsum(lengths[order]) - lengths[order]
    first = np.searchsorted(window[order], window[order], side="left")
    start = np.empty(len(window), dtype=np.int64)
    start[order] = window[order] * context + gap[order] + before - before[first]
    return WindowPlacements(
        window=window,
        gap=gap,
        start=start,
        drawn=window * context + offset,
        redraws=draws,
    )
