"""The rules by which a background document overlaps with an example."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from inject.settings import Settings

SHORTEST = 8
"""Words below which a text is too common to be looked for."""


class OverlapSettings(Settings):
    """The rules of the audit of the background's text.

    `inject.words` defines a word; a character of a script without spaces counts as
    a share of one.
    """

    ngram: Annotated[int, Field(ge=3, le=100)] | None = 13
    """Consecutive words that an overlapping document and example share (13: GPT-3; 7 and 8 are also
    common); null: no such rule. Shorter examples, from 8 words, are searched for whole."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the example's n-grams that must occur in the document, instead of one (`ngram: 8,
    share: 0.7` is PaLM's rule)."""
    near_duplicate: Annotated[float, Field(gt=0.2, le=1)] | None = 0.3
    """Jaccard similarity of word 3-grams of an example and a near-duplicate span (0.3: one word in
    five replaced, or sentences reordered); null: no such rule."""
    drop: bool | Literal["stop"] = True
    """`true` drops overlapping documents from the corpus, `false` only lists them, `stop` stops the
    run."""

    @model_validator(mode="after")
    def _check_consistency(self) -> "OverlapSettings":
        if self.share is not None and self.ngram is None:
            raise ValueError("share is a share of n-grams; set ngram, or omit share")
        return self

    @property
    def active(self) -> bool:
        """Whether there is any rule."""
        return self.ngram is not None or self.near_duplicate is not None

    def label(self) -> str:
        """Return the rules as a short text."""
        parts = []
        if self.ngram is not None:
            parts.append(
                f"{self.ngram} words in a row"
                if self.share is None
                else f"{self.share:.0%} of an example's {self.ngram}-grams"
            )
        if self.near_duplicate is not None:
            parts.append(f"near-duplicates from {self.near_duplicate:g}")
        return " or ".join(parts) or "no rule"
