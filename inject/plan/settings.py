"""The settings of a plan: copies per member, and their positions."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from inject.corpus.separators import Separation, Separator
from inject.settings import Settings

MAX_COPIES = 1_000_000
"""Of one example."""
Count = Annotated[int, Field(gt=0, le=MAX_COPIES)]


class Copies(Settings):
    """The number of copies of each member: exactly one of the three rules."""

    fixed: Count | None = None
    """Copies of every member."""
    poisson: Annotated[float, Field(gt=0, le=MAX_COPIES)] | None = None
    """Rate of a Poisson distribution of counts; zero is possible."""
    levels: Annotated[tuple[Count, ...], Field(min_length=1, max_length=1000)] | None = None
    """Counts among which each dataset's members are divided evenly, by group."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Copies":
        forms = [name for name in ("fixed", "poisson", "levels") if getattr(self, name) is not None]
        if len(forms) != 1:
            raise ValueError(
                f"give exactly one of fixed, poisson, levels; got {', '.join(forms) or 'none'}"
            )
        if twice := [level for level in self.levels or () if (self.levels or ()).count(level) > 1]:
            raise ValueError(f"levels: {twice[0]} appears twice; each level gets as many members")
        return self

    @property
    def mean(self) -> float:
        """Copies of a member, on average."""
        if self.poisson is not None:
            return self.poisson
        counts = (self.fixed,) if self.fixed is not None else self.levels or ()
        return sum(counts) / len(counts)

    def label(self) -> str:
        """Return a short text such as `poisson=2` for tables and folder names."""
        if self.fixed is not None:
            return f"fixed={self.fixed}"
        if self.poisson is not None:
            return f"poisson={self.poisson:g}"
        return "levels=" + "-".join(str(level) for level in self.levels or ())


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
    straddle: Literal["forbid", "allow"] | None = None
    """Whether a copy may cross a window boundary. null: `allow` for `splice` and `document` over
    the whole training, else `forbid`."""
    separator: Separator | None = None
    """Separator around each copy: `none`; `blank_line`; `end`: an end token on both sides
    (`document`: only after it); `start_end`: a start token before, an end token after. null: `end`
    for `document`, else `none`."""

    @model_validator(mode="after")
    def _check_consistency(self) -> "Placement":
        low, high = self.between
        if low >= high:
            raise ValueError(f"between: [{low:g}, {high:g}] is empty; the first must be smaller")
        if self.straddle == "allow" and self.policy == "window":
            raise ValueError(
                "policy `window` puts each copy inside one window, so straddle cannot be `allow`; "
                "use `splice` for copies that straddle windows"
            )
        if self.straddle == "allow" and self.timed:
            raise ValueError(
                "between restricts copies to some windows, and neighbouring windows are trained "
                "on at different times, so straddle cannot be `allow`"
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
        return self.between != (0.0, 1.0)

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
        if self.timed:
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
