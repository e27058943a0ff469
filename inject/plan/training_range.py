"""The windows that are trained on in a part of the first epoch, in bounded memory.

The order of windows is a sort by a keyed 64-bit hash (`inject.stream.order`), so a part of the
training is a set of windows with neighbouring hashes. Up to `EXACT` windows the order is computed
and the part has exactly the windows with those ranks: 40 bytes and a microsecond per window.

Beyond, no order is computed. A window belongs to the part when its hash is between the two shares
of the range of hashes, each moved inwards by the margin by which a window's rank can differ from
its hash: by the Dvoretzky-Kiefer-Wolfowitz inequality (Massart 1990) no rank of n windows is
further than sqrt(ln(2 / d) / 2 n) from its hash, but for a probability d of 1e-18. So a copy is
never outside the requested range; the cost is the windows within 0.02 % of the training at either
end (10^12 tokens, windows of 2,048). The windows that belong are counted once, block by block; a
copy draws one of their numbers, and its block is looked at again. Memory: one number per block.
Cost: 16 ns a window and look, so 8 s to count 10^12 tokens and at most as much for any number of
copies, for any share.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from inject import keyed
from inject.errors import InputError
from inject.keyed import I64
from inject.plan.settings import Share
from inject.stream.order import neighbours_hashes, window_hashes, window_order

Bools = npt.NDArray[np.bool_]

EXACT = 1 << 24
"""Windows up to which the order itself is computed: 0.7 GB and a few seconds."""
_DOUBT = 1e-18
_BLOCK = 1 << 16
"""Neighbouring windows that are looked at together."""


def training_range(between: tuple[Share, Share], *, seed: int, n_windows: int) -> "TrainingRange":
    """Return the windows trained on between two shares of the first epoch.

    Args:
        between: first and last share of the epoch, rounded down to whole windows.
        seed: the arm's seed, which decides the order of windows.
        n_windows: whole windows in the stream.

    Raises:
        InputError: a part without windows.
    """
    if between == (0.0, 1.0):
        return WholeTraining(count=n_windows)
    low, high = (int(share * n_windows) for share in between)
    if low == high:
        raise InputError(
            f"placement.between: [{between[0]:g}, {between[1]:g}] of {n_windows:,} windows has "
            "no window",
            where="placement.between",
            hint="Widen it, or raise corpus.tokens.",
        )
    if n_windows <= EXACT:
        return RankedRange(allowed=np.sort(window_order(seed, 0, n_windows)[low:high]))
    return _hashed_range(between, seed=seed, n_windows=n_windows)


def _hashed_range(between: tuple[Share, Share], *, seed: int, n_windows: int) -> "HashedRange":
    margin = rank_margin(n_windows)
    # At the ends of the training there is no rank beyond, so no window is lost.
    low = 0.0 if between[0] == 0.0 else float(between[0]) + margin
    high = 1.0 if between[1] == 1.0 else float(between[1]) - margin
    if high - low < margin:
        raise InputError(
            f"placement: [{float(between[0]):g}, {float(between[1]):g}] is too short a range of "
            f"{n_windows:,} windows: with so many, a window's place in the order is known "
            f"to {margin:.2%} of the training",
            where="placement",
            hint=f"Widen it to {4 * margin:.2%} or more.",
        )
    return HashedRange(
        seed=seed,
        n_windows=n_windows,
        low=int(low * 2**64),
        last=min(int(high * 2**64), 2**64) - 1,
        margin=margin,
    )


def rank_margin(n_windows: int) -> float:
    """Return the largest distance of a window's rank from its hash, as a share of the training."""
    return math.sqrt(math.log(2 / _DOUBT) / (2 * n_windows))


@dataclass(frozen=True, kw_only=True)
class WholeTraining:
    """All windows."""

    count: int
    """Minimum number of windows."""
    whole: bool = True
    """Whether it is the whole training."""

    def draw(self, seed: int, keys: keyed.U64, copies: I64, draws: I64) -> I64:
        """Return a window for each (example, copy, draw), uniform over the part."""
        words = keyed.words(seed, keyed.Stream.ANCHOR, keys, copies, draws)
        return keyed.below(self.count, words).astype(np.int64)

    def contains(self, windows: I64) -> Bools:
        """Return whether each window belongs to the part."""
        return np.ones(len(windows), dtype=np.bool_)


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedRange:
    """The windows of certain ranks, listed."""

    allowed: I64
    """Ascending."""
    whole: bool = False

    @property
    def count(self) -> int:
        """See `WholeTraining`."""
        return len(self.allowed)

    def draw(self, seed: int, keys: keyed.U64, copies: I64, draws: I64) -> I64:
        """See `WholeTraining`."""
        words = keyed.words(seed, keyed.Stream.ANCHOR, keys, copies, draws)
        return self.allowed[keyed.below(len(self.allowed), words).astype(np.int64)]

    def contains(self, windows: I64) -> Bools:
        """See `WholeTraining`."""
        places = np.minimum(np.searchsorted(self.allowed, windows), len(self.allowed) - 1)
        return self.allowed[places] == windows


@dataclass(frozen=True, kw_only=True)
class HashedRange:
    """The windows whose hash is in a range; see the module."""

    seed: int
    n_windows: int
    low: int
    """Smallest hash."""
    last: int
    """Largest hash."""
    margin: float
    """Share of the training given up at either end."""
    whole: bool = False

    @property
    def count(self) -> int:
        """See `WholeTraining`: the expectation less the margin at either end."""
        share = (self.last - self.low) / 2**64
        return max(int((share - 2 * self.margin) * self.n_windows), 1)

    def draw(self, seed: int, keys: keyed.U64, copies: I64, draws: I64) -> I64:
        """See `WholeTraining`."""
        words = keyed.words(seed, keyed.Stream.STRETCH, keys, copies, draws)
        numbers = keyed.below(int(self._before[-1]), words).astype(np.int64)
        blocks = np.searchsorted(self._before, numbers, side="right") - 1
        order = np.argsort(blocks, kind="stable")
        edges = np.flatnonzero(np.diff(blocks[order], prepend=-1, append=-1))
        windows = np.empty(len(keys), dtype=np.int64)
        for first, stop in pairwise(edges.tolist()):
            part = order[first:stop]
            block = int(blocks[part[0]])
            windows[part] = self._of_block(block)[numbers[part] - self._before[block]]
        return windows

    @cached_property
    def _before(self) -> I64:
        """Number of windows in the blocks before each, and in all, [blocks + 1]."""
        blocks = range(math.ceil(self.n_windows / _BLOCK))
        return np.cumsum([0, *(len(self._of_block(block)) for block in blocks)])

    def _of_block(self, block: int) -> I64:
        """Return the windows of a block that belong, ascending."""
        start = block * _BLOCK
        stop = min(start + _BLOCK, self.n_windows)
        return start + np.flatnonzero(self._belong(neighbours_hashes(self.seed, 0, start, stop)))

    def contains(self, windows: I64) -> Bools:
        """See `WholeTraining`."""
        return self._belong(window_hashes(self.seed, 0, windows))

    def _belong(self, hashes: keyed.U64) -> Bools:
        return (hashes >= np.uint64(self.low)) & (hashes <= np.uint64(self.last))


TrainingRange = WholeTraining | RankedRange | HashedRange
"""The windows allowed for copies."""
