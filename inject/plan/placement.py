"""The positions of copies: anchors in the clean corpus.

An anchor is a position in the clean token stream; the copy is put before that token. Three ways
lead to it.

`splice` and `document` over the whole training: the anchor of copy c of example e is a keyed
draw over the *whole* budget, so it only depends on (seed, e, c). Copies take room, the tail of
the background gives way, and an anchor that fell into the tail is drawn again with the next
counter; how often is recorded. Every anchor that was not re-drawn keeps its position when
examples or datasets are added. `document` moves the position back to the start of the document
that it fell into; long documents draw more copies, as positions are uniform over tokens.

`window`, and `splice` with copies kept inside windows: `inject.plan.windows` draws a window and an
offset. For `splice` these are positions of the contaminated stream, so the anchor in the clean
corpus follows from the payload before it.

`document` with copies kept inside windows: the same draw, then the first place between two
documents from there on at which the copy fits into an allowed window.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from inject import keyed
from inject.errors import InputError
from inject.keyed import I64
from inject.plan.settings import Placement
from inject.plan.training_range import TrainingRange, training_range
from inject.plan.windows import (
    MAX_ROUNDS,
    UnplacedCopies,
    check_room,
    draw_in_windows,
    drawn_places,
)

_LEAST_BACKGROUND = 0.01


@dataclass(frozen=True, kw_only=True)
class Anchors:
    """Anchors of many copies, each array of shape [number of copies]."""

    position: I64
    """Position in the clean corpus; the copy precedes this token."""
    drawn: I64
    """Position that was drawn: in the clean corpus, or, for copies kept inside windows, in the
    contaminated stream as if no other copy were in the window."""
    redraws: I64
    """Number of earlier draws that found no room."""
    tiebreak: keyed.U64
    """Order of copies that share an anchor: the smaller goes first."""


def background_left(budget: int, payload: int) -> int:
    """Return the number of background tokens in a budget that includes `payload` tokens.

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


def place_copies(
    copies: UnplacedCopies,
    *,
    placement: Placement,
    budget: int,
    document_starts: I64,
) -> Anchors:
    """Find the anchor of each copy.

    Args:
        copies: which copies, of which lengths.
        placement: see the module.
        budget: tokens in the training stream, payload included.
        document_starts: ascending document starts in the clean corpus; the first is 0.

    Raises:
        InputError: when there is no room for the copies.
    """
    lengths, context = copies.lengths, copies.context
    background = background_left(budget, int(lengths.sum()))
    if not placement.contained:
        starts = document_starts if placement.policy == "document" else None
        return _over_the_budget(copies, budget, background, starts)
    n_windows = budget // context
    shares = placement.shares(n_windows, context)
    allowed_windows = training_range(shares, seed=copies.seed, n_windows=n_windows)
    check_room(copies, allowed_windows)
    if placement.policy == "document":
        starts = document_starts[: int(np.searchsorted(document_starts, background))]
        return _between_documents(copies, n_windows, allowed_windows, starts)
    places = draw_in_windows(copies, allowed_windows)
    order = np.argsort(places.start)
    if placement.policy == "window":
        position = places.window * context + places.gap
    else:
        before = np.empty(len(order), dtype=np.int64)
        before[order] = np.cumsum(lengths[order]) - lengths[order]
        position = places.start - before
    return Anchors(
        position=position,
        drawn=places.drawn,
        redraws=places.redraws,
        tiebreak=_ranks(order),
    )


def _over_the_budget(
    copies: UnplacedCopies, budget: int, background: int, document_starts: I64 | None
) -> Anchors:
    draws = np.zeros_like(copies.numbers)
    positions = _draw(copies, draws, budget)
    outside = np.flatnonzero(positions >= background)
    while len(outside):
        draws[outside] += 1
        positions[outside] = _draw(copies.take(outside), draws[outside], budget)
        outside = outside[positions[outside] >= background]
    position = positions
    if document_starts is not None:
        position = document_starts[np.searchsorted(document_starts, positions, side="right") - 1]
    return Anchors(
        position=position,
        drawn=positions,
        redraws=draws,
        tiebreak=copies.words(keyed.Stream.SAME_ANCHOR),
    )


def _between_documents(
    copies: UnplacedCopies,
    n_windows: int,
    allowed_windows: TrainingRange,
    document_starts: I64,
) -> Anchors:
    """Walk the documents once a round; copies that found no place by the end are re-drawn."""
    draws, context = np.zeros_like(copies.numbers), copies.context
    keys = copies.words(keyed.Stream.SAME_ANCHOR)

    @cache
    def allowed(window: int) -> bool:
        return allowed_windows.whole or bool(allowed_windows.contains(np.array([window]))[0])

    for _ in range(MAX_ROUNDS):
        window, offset = drawn_places(copies, draws, allowed_windows)
        positions = window * context + offset
        drawn_order = np.lexsort((keys, positions))
        position, order = _walk_places(
            drawn_order, positions, copies, n_windows, allowed, document_starts
        )
        left = np.flatnonzero(position < 0)
        if not len(left):
            return Anchors(
                position=position, drawn=positions, redraws=draws, tiebreak=_ranks(order)
            )
        draws[left] += 1
    raise InputError(
        f"{len(left):,} copies fit between no two documents of their allowed windows "
        f"({len(document_starts):,} documents, windows of {context:,} tokens)",
        where="placement",
        hint="Use policy window with separator end, widen placement.between or placement.stretch, "
        "or allow straddling.",
    )


def _walk_places(
    order: I64,
    positions: I64,
    copies: UnplacedCopies,
    n_windows: int,
    allowed: Callable[[int], bool],
    document_starts: I64,
) -> tuple[I64, list[int]]:
    """Put each copy at the first place between documents, from its position on, that takes it.

    Returns the anchors, -1 for copies left over, and the copies placed, in stream order.
    """
    position = np.full(len(order), -1, dtype=np.int64)
    starts = np.ascontiguousarray(document_starts).data
    waiting: list[int] = []
    placed: list[int] = []
    payload = 0
    next_copy = 0
    at = 0
    while at < len(starts) and (waiting or next_copy < len(order)):
        if not waiting:
            at = bisect_left(starts, int(positions[order[next_copy]]) - payload, at)
            if at == len(starts):
                break
        end = starts[at] + payload
        while next_copy < len(order) and positions[order[next_copy]] <= end:
            waiting.append(int(order[next_copy]))
            next_copy += 1
        still: list[int] = []
        for copy in waiting:
            end = starts[at] + payload
            window, inside = divmod(end, copies.context)
            length = int(copies.lengths[copy])
            fits = inside + length <= copies.context and window < n_windows
            if fits and allowed(window):
                position[copy] = starts[at]
                placed.append(copy)
                payload += length
            else:
                still.append(copy)
        waiting = still
        at += 1
    return position, placed


def _ranks(order: npt.ArrayLike) -> keyed.U64:
    """Return the place of each copy in stream order, which also orders copies of one anchor."""
    copies = np.asarray(order, dtype=np.int64)
    ranks = np.empty(len(copies), dtype=np.uint64)
    ranks[copies] = np.arange(len(copies), dtype=np.uint64)
    return ranks


def _draw(copies: UnplacedCopies, draws: I64, budget: int) -> I64:
    return keyed.below(budget, copies.words(keyed.Stream.ANCHOR, draws)).astype(np.int64)
