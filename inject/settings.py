"""The base of all settings, and the settings of injection: copies and placement.

Settings are what a user writes in an experiment file. They are frozen, refuse unknown
keys, and carry a sentence under every field, which the documentation quotes.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Settings(BaseModel):
    """Base: frozen, unknown keys refused, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]


class Copies(Settings):
    """How many copies of each member: exactly one of the three rules."""

    fixed: PositiveInt | None = None
    """Every member is spiked this many times."""
    poisson: PositiveFloat | None = None
    """Counts are drawn from a Poisson distribution with this rate; zero is possible."""
    levels: Annotated[tuple[PositiveInt, ...], Field(min_length=1)] | None = None
    """Members of each dataset are dealt evenly to these counts."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Copies":
        given = [name for name in ("fixed", "poisson", "levels") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of fixed, poisson, levels; got {', '.join(given) or 'none'}"
            )
        return self

    def label(self) -> str:
        """Return a short text such as `poisson=2` for tables and folder names."""
        if self.fixed is not None:
            return f"fixed={self.fixed}"
        if self.poisson is not None:
            return f"poisson={self.poisson:g}"
        return "levels=" + "-".join(str(level) for level in self.levels or ())


class Placement(Settings):
    """Where the copies go."""

    policy: Literal["splice", "document"] = "splice"
    """`splice`: at a token boundary anywhere in the stream; `document`: as a document of
    its own, between two others."""


def plain(settings: BaseModel, *, exclude: set[str] | None = None) -> dict[str, Any]:
    """Return settings as plain JSON values, fit for `inject.digest.digest`."""
    return settings.model_dump(mode="json", exclude=exclude)


class PoolSettings(Settings):
    """How rows become members and non-members."""

    near_duplicate: Annotated[float, Field(gt=0, le=1)] | None = 0.7
    """Rows of one dataset whose word 3-grams overlap by this share (Jaccard) or more, and
    that are not of one group, are near-duplicates: only one stays. null: keep all."""
    min_tokens: Annotated[int, Field(ge=2)] = 8
    """Rows with fewer tokens are dropped and counted: they occur by chance anywhere."""
    long_examples: Literal["error", "truncate", "drop", "split"] = "error"
    """What to do with rows longer than the context: stop; cut the text (both sides alike);
    drop them (both sides alike); or leave them whole, so that a copy spans several windows."""
