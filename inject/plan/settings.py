"""The settings of a plan: copies per member, and their positions."""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from inject.corpus.separators import Separation, Separator
from inject.errors import InputError
from inject.settings import PositiveInt, Settings, plain

MAX_COPIES = 1_000_000
"""Of one example."""
Count = Annotated[int, Field(gt=0, le=MAX_COPIES)]
Level = Annotated[int, Field(ge=0, le=MAX_COPIES)]
Share = float | Fraction
"""A share of the training; a fraction is exact."""


class Copies(Settings):
    """The number of copies of each member: exactly one of the three rules."""

    fixed: Count | None = None
    """Copies of every member."""
    poisson: Annotated[float, Field(gt=0, le=MAX_COPIES)] | None = None
    """Rate of a Poisson distribution of counts; zero is possible."""
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=1000)] | None = None
    """Counts among which each dataset's members are divided evenly, by group; repeats are
    weights."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Copies":
        forms = [name for name in ("fixed", "poisson", "levels") if getattr(self, name) is not None]
        if len(forms) != 1:
            raise ValueError(
                f"give exactly one of fixed, poisson, levels; got {', '.join(forms) or 'none'}"
            )
        if self.levels is not None and not any(self.levels):
            raise ValueError("levels: all are 0, so no member has a copy; give one above 0")
        return self

    @property
    def mean(self) -> float:
        """Copies of a member, on average."""
        if self.poisson is not None:
            return self.poisson
        counts = (self.fixed,) if self.fixed is not None else self.levels or ()
        return sum(counts) / len(counts)

    @property
    def level_cycle(self) -> tuple[int, ...]:
        """The levels in the order in which groups get them: repeats of each are spread evenly."""
        weights = Counter(self.levels or ())
        turns = [
            (Fraction(2 * number + 1, weight), level)
            for level, weight in weights.items()
            for number in range(weight)
        ]
        return tuple(level for _, level in sorted(turns, key=lambda turn: turn[0]))

    def label(self) -> str:
        """Return a short text such as `poisson=2` for tables and folder names."""
        if self.fixed is not None:
            return f"fixed={self.fixed}"
        if self.poisson is not None:
            return f"poisson={self.poisson:g}"
        weights = Counter(self.levels or ()).items()
        return "levels=" + "-".join(
            f"{level}x{weight}" if weight > 1 else str(level) for level, weight in weights
        )


Policy = Literal["splice", "window", "document"]


class Placement(Settings):
    """Positions of the copies, and the separators around them."""

    policy: Policy = "splice"
    """`splice`: at any token boundary; `window`: inside one window, in place of as many background
    tokens; `document`: between two documents."""
    between: tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]] = (
        0.0,
        1.0,
    )
    """Shares of the training between which copies are trained on: `[0, 0.2]` is early, `[0.8, 1]`
    late."""
    stretch: PositiveInt | None = None
    """In place of `between`: tokens of the training in which all copies occur, rounded inwards to
    whole windows."""
    tail: Annotated[int, Field(ge=0, le=10**15)] | None = None
    """Tokens of the training after the stretch; null: 0."""
    straddle: Literal["forbid", "allow"] | None = None
    """Whether a copy may cross a window boundary; null: `allow` for `splice` and `document` over
    the whole training, else `forbid`."""
    separator: Separator | None = None
    """Separator around each copy: `none`; `blank_line`; `end`, an end token on both sides
    (`document`: only after it); `start_end`, a start token before, an end token after. null: `end`
    for `document`, else `none`."""

    @model_validator(mode="after")
    def _check_consistency(self) -> "Placement":
        low, high = self.between
        if low >= high:
            raise ValueError(f"between: [{low:g}, {high:g}] is empty; the first must be smaller")
        if self.tail is not None and self.stretch is None:
            raise ValueError(
                f"tail: {self.tail:,} tokens after no stretch; give stretch, or remove tail"
            )
        if self.stretch is not None and self.between != (0.0, 1.0):
            raise ValueError(
                f"stretch: {self.stretch:,} tokens and between: [{low:g}, {high:g}] both restrict "
                "copies to a part of the training; remove one of them"
            )
        if self.straddle == "allow" and self.policy == "window":
            raise ValueError(
                "policy `window` puts each copy inside one window, so straddle cannot be `allow`; "
                "use `splice` for copies that straddle windows"
            )
        if self.straddle == "allow" and self.timed:
            raise ValueError(
                f"{self.timed_by} restricts copies to some windows, and neighbouring windows are "
                "trained on at different times, so straddle cannot be `allow`"
            )
        if self.policy == "document" and self.separator in ("none", "blank_line"):
            raise ValueError(
                "policy `document` makes a document of each copy, which must end with an end "
                "token; allowed separators: end, start_end"
            )
        return self

    @property
    def timed(self) -> bool:
        """Whether copies are restricted to a part of the training."""
        return self.stretch is not None or self.between != (0.0, 1.0)

    @property
    def timed_by(self) -> str:
        """The key that restricts copies to a part of the training, if any does."""
        return "between" if self.stretch is None else "stretch"

    def shares(self, n_windows: int, context: int) -> tuple[Share, Share]:
        """Return the shares of the windows, in training order, between which copies are allowed.

        Args:
            n_windows: whole windows in the stream.
            context: tokens in a window.

        Raises:
            InputError: a stretch that does not fit into the stream, or has no whole window.
        """
        if self.stretch is None:
            return self.between
        tail, trained = self.tail or 0, n_windows * context
        # Both ends are rounded inwards.
        low = n_windows - (self.stretch + tail) // context
        high = n_windows - -(-tail // context)
        if self.stretch + tail > trained:
            problem = f"and a tail of {tail:,} are more than the {trained:,} of the training"
        elif low >= high:
            problem = f"that end {tail:,} before the end have no whole window of {context:,}"
        else:
            return Fraction(low, n_windows), Fraction(high, n_windows)
        raise InputError(
            f"{self.stretch:,} tokens {problem}",
            where="placement.stretch",
            allowed=f"{context:,} or more, with the tail up to {trained:,}",
            hint="Change placement.stretch or placement.tail, or raise corpus.tokens.",
        )

    def identity(self) -> dict[str, Any]:
        """Return all of it as plain JSON values; a stretch only if there is one."""
        return plain(self, exclude={"stretch", "tail"} if self.stretch is None else None)

    @property
    def contained(self) -> bool:
        """Whether each copy is inside one window."""
        return self.straddle == "forbid" or self.policy == "window" or self.timed

    @property
    def separated_by(self) -> Separator:
        """The separator, with the default of the policy filled in."""
        return self.separator or ("end" if self.policy == "document" else "none")

    @property
    def separation(self) -> Separation:
        """The separator around each copy."""
        return self.separated_by, self.policy == "document"

    def label(self) -> str:
        """Return a short text such as `window 0.8-1 end` for tables and folder names."""
        parts: list[str] = [self.policy]
        if self.stretch is not None:
            parts.append(f"stretch={self.stretch} tail={self.tail or 0}")
        elif self.timed:
            parts.append(f"{self.between[0]:g}-{self.between[1]:g}")
        if self.straddle is not None:
            parts.append(f"straddle={self.straddle}")
        if self.separator is not None:
            parts.append(self.separator)
        return " ".join(parts)


def separations(placements: Iterable[Placement]) -> tuple[Separation, ...]:
    """Return each kind of separators that take room in a copy's only window, once, sorted.

    Args:
        placements: of all arms; those that let copies straddle windows require no room.
    """
    kinds = {
        placement.separation
        for placement in placements
        if placement.contained and placement.separated_by != "none"
    }
    return tuple(sorted(kinds))
