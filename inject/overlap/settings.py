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
    """A document and an example that share this many words in a row overlap (13: GPT-3; 7 and 8
    are also common); null: no such rule. Examples with fewer words, 8 at least, are searched for
    whole."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """If set, one shared n-gram is not enough: this share of the example's n-grams must occur
    in the document (`ngram: 8, share: 0.7` is the rule of PaLM)."""
    near_duplicate: Annotated[float, Field(gt=0.2, le=1)] | None = 0.3
    """A span of a document whose word 3-grams agree with an example's to this degree
    (Jaccard) is a near-duplicate: one word in five replaced, sentences in another order. null:
    no such rule."""
    drop: bool | Literal["stop"] = True
    """Leave documents that overlap out of the corpus; false only lists them; `stop` stops the
    run and names them."""

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
