"""The settings of the pool: which rows can become members and non-members."""

from typing import Annotated, Literal

from pydantic import Field

from inject.settings import Settings


class PoolSettings(Settings):
    """How rows become members and non-members."""

    near_duplicate: Annotated[float, Field(gt=0, le=1)] | None = 0.7
    """Rows of one dataset or of two whose word 3-grams overlap by this share (Jaccard) or more,
    and that are not of one group, are near-duplicates: only one stays. null: keep all."""
    min_tokens: Annotated[int, Field(ge=2)] = 8
    """Rows with fewer tokens are dropped and counted: they occur by chance anywhere."""
    long_examples: Literal["error", "truncate", "drop", "split"] = "error"
    """What to do with rows longer than the context, or than what separators leave of it where a
    copy must lie inside one window: stop; cut the text (both sides alike);
    drop them (both sides alike); or leave them whole, so that a copy spans several windows."""
