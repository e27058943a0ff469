"""The user's settings of the variants of copies."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from inject.errors import InputError
from inject.secrets import is_variable, secret_in
from inject.settings import PositiveFloat, PositiveInt, Settings

Share = Annotated[float, Field(gt=0, lt=1)]

PROMPT = (
    "Rewrite the following text in other words. Keep its meaning, its names and its numbers. "
    "Answer with the rewritten text alone.\n\n{text}\n\nRewritten text:"
)


class PlainVariant(Settings):
    """The example, whole or in part, or in lower case."""

    kind: Literal["whole", "question", "no_answer", "lower_case"] = "whole"
    """`whole`: word for word; `question`: up to the end of the question, a passage before it
    included, as an exam that leaked without options or key; `no_answer`: its answer cut out;
    `lower_case`."""
    weight: PositiveFloat = 1.0
    """Share of this variant, relative to the other weights."""

    def label(self) -> str:
        """Return a short name for tables."""
        share = getattr(self, "share", None)
        text = None if share is None else np.format_float_positional(share, trim="-")
        return self.kind if text is None else f"{self.kind}={text}"


# Each further variant has its own `kind`. A type checker rejects that for attributes that can be
# set; those of settings are frozen.
class ReplacedVariant(PlainVariant):
    """The example with some of its tokens replaced at random."""

    kind: Literal["replaced"]  # type: ignore[assignment]
    """`replaced`."""
    share: Share
    """Share of the tokens that is replaced, at least one token."""
    versions: PositiveInt = 1
    """How many different replacements each example has; its copies take turns."""


class TruncatedVariant(PlainVariant):
    """The beginning of the example."""

    kind: Literal["truncated"]  # type: ignore[assignment]
    """`truncated`."""
    share: Share
    """Share of the tokens that is kept, from the first on."""


class ParaphraseVariant(PlainVariant):
    """The example in other words."""

    # A problem with an address or a key must not repeat it.
    model_config = ConfigDict(hide_input_in_errors=True)

    kind: Literal["paraphrase"]  # type: ignore[assignment]
    """`paraphrase`."""
    by: Literal["data", "model"] = "data"
    """`data`: the paraphrases that the dataset brings; `model`: a language model writes them."""
    versions: PositiveInt = 1
    """How many paraphrases of each example there are; its copies take turns."""
    model: str | None = None
    """Path or hub id of a local model, or the model's name on the server."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server, such as `http://localhost:8000/v1`."""
    api_key_variable: str | None = None
    """Environment variable that contains the server's key; the key is never written anywhere."""
    send_protected: tuple[str, ...] = ()
    """Protected datasets, by name, whose texts may be sent to the server; none by default."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Temperature of sampling; 0 takes the likeliest token."""
    prompt: Annotated[str, Field(pattern=r"\{text\}")] = PROMPT
    """The prompt for the model; `{text}` stands for the example."""
    max_tokens: PositiveInt = 512
    """Longest answer."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Seed of the sampling."""

    @model_validator(mode="after")
    def _check_consistency(self) -> "ParaphraseVariant":
        if self.by == "model" and self.model is None:
            raise ValueError("by: model needs the model: a path, a hub id, or its name on a server")
        if self.by == "data" and (self.model is not None or self.base_url is not None):
            raise ValueError("model and base_url belong to by: model")
        if self.base_url is None and (self.api_key_variable is not None or self.send_protected):
            name = "send_protected" if self.api_key_variable is None else "api_key_variable"
            raise ValueError(f"{name} belongs to a server: give base_url")
        if self.base_url is not None and (kind := secret_in(self.base_url)):
            raise ValueError(
                f"base_url contains {kind}, which would be written into every run's folder; put "
                "the key into an environment variable and name that in api_key_variable"
            )
        if self.api_key_variable is not None and not is_variable(self.api_key_variable):
            raise ValueError(
                "api_key_variable is not the name of an environment variable (letters, digits, "
                "underscores); give the name, never the key itself"
            )
        return self

    def may_send(self, dataset: str, *, protected: bool) -> bool:
        """Return whether the texts of a dataset may leave this machine for the model."""
        return self.base_url is None or not protected or dataset in self.send_protected


Variant = Annotated[
    PlainVariant | ReplacedVariant | TruncatedVariant | ParaphraseVariant,
    Field(discriminator="kind"),
]


class Variants(Settings):
    """Which variants the copies have."""

    model_config = ConfigDict(hide_input_in_errors=True)

    of: Annotated[tuple[Variant, ...], Field(min_length=1)] = (PlainVariant(),)
    """The variants: `whole`, `question`, `no_answer`, `lower_case`, `replaced`, `truncated`,
    `paraphrase`."""
    assign_by: Literal["examples", "copies"] = "examples"
    """`examples`: all copies of an example have one variant, assigned evenly by weight; `copies`:
    each copy draws its own."""

    @model_validator(mode="after")
    def _check_distinct(self) -> "Variants":
        labels = [variant.label() for variant in self.of]
        duplicate = next((label for label in labels if labels.count(label) > 1), None)
        if duplicate is not None:
            raise ValueError(f"the variant {duplicate} is given twice; raise its weight instead")
        return self

    def label(self) -> str:
        """Return a short text for tables and folder names."""
        text = ", ".join(variant.label() for variant in self.of)
        return text if self.assign_by == "examples" or len(self.of) == 1 else f"{text} by copy"


def protected_texts_error(datasets: Sequence[str]) -> InputError:
    """Return the error for protected datasets that a server was to paraphrase."""
    return InputError(
        f"the texts of protected data ({', '.join(datasets)}) would be sent to a server",
        where="variants.of.paraphrase",
        hint="Use a local model (omit base_url), or, if the server may have them, set "
        f"send_protected: [{', '.join(datasets)}].",
    )
