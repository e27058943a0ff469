"""The settings of an unlearning audit: the keys of its file, and the options of its command."""

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from analysis.settings import AuditRule
from analysis.unlearning_audit.evidence import MODELS
from analysis.unlearning_audit.texts import PROMPT_WORDS, WORDS
from detect.settings import DeviceMap, Dtype
from detect.user_rows.row_settings import Delimiter
from inject.settings import PositiveFloat, PositiveInt, Settings


class Revisions(Settings):
    """The version of each model on the hub; null: its newest."""

    original: str | None = None
    """Branch, tag or commit."""
    unlearned: str | None = None
    """Likewise."""
    retrained: str | None = None
    """Likewise."""


class AuditSettings(AuditRule):
    """The audit of an unlearned model against the original."""

    variables: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Values for `${NAME}` elsewhere in the file."""
    original: Annotated[str, Field(min_length=1)]
    """The model before unlearning: a folder or a hub id."""
    unlearned: Annotated[str, Field(min_length=1)]
    """The audited model."""
    retrained: str | None = None
    """A model that was trained like the original but without the texts."""
    revisions: Revisions = Revisions()
    """Versions on the hub."""
    trust_remote_code: bool = False
    """Run code that comes with a model's repository."""
    texts: Annotated[str, Field(min_length=1)]
    """The texts to be forgotten: .txt (a book), .jsonl, .csv, .parquet, .gz or .zst of these."""
    text_column: str | None = None
    """Column of the text; `text` or `input` by default."""
    limit: PositiveInt | None = None
    """Read only this number of rows of each file."""
    delimiter: Delimiter = None
    """CSV delimiter, or `tab`; by default that of the first line."""
    holdout: str | None = None
    """Similar texts that no model saw. They show whether the unlearned model works at all; without
    a retrained model they also calibrate the rule, less strictly."""
    retain: str | None = None
    """Texts that the unlearned model should still know. A model that lost them is ruined, even
    if it matches the original on texts that no model saw."""
    questions: str | None = None
    """Rows of `question` and `answer` about the texts."""
    chunk_words: PositiveInt | None = WORDS
    """Words of a chunk; null keeps each text whole."""
    prompt_words: PositiveInt = PROMPT_WORDS
    """Words of a chunk that the models continue."""
    samples: Annotated[int, Field(ge=0, le=1000)] = 20
    """Continuations of each chunk, and answers to each question; 0 writes none."""
    max_tokens: PositiveInt | None = None
    """Longest continuation; by default as long as the true one, at most 512."""
    answer_tokens: PositiveInt = 48
    """Longest answer."""
    temperature: PositiveFloat = 1.0
    """Of the sampling."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the probability that is sampled from."""
    all_chunks: bool = False
    """Continue all chunks, not the suspicious ones and a sample of the others."""
    others: Annotated[int, Field(ge=0)] = 50
    """Unsuspicious chunks that are also continued, so that misses can be measured."""
    reference: str | None = None
    """A further model, for detectors that need one."""
    frequency: str | None = None
    """Texts to count tokens in, for detectors that need it."""
    held_out: str | None = None
    """Further texts, for detectors that need some."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Of the sampling."""
    device: str = "auto"
    """`auto`, `cpu`, `cuda:1` …"""
    dtype: Dtype = "auto"
    """Number format of the models."""
    device_map: DeviceMap = "none"
    """`auto` spreads a large model over all devices."""
    batch_tokens: PositiveInt | None = None
    """Padded tokens in one batch of scoring; no influence on the numbers."""

    @field_validator("band", mode="before")
    @classmethod
    def _upper_edge(cls, band: Any) -> Any:
        return (1 / band, band) if isinstance(band, int | float) and band > 1 else band

    @model_validator(mode="after")
    def _prompt_leaves_something(self) -> "AuditSettings":
        if self.chunk_words is not None and self.prompt_words >= self.chunk_words:
            raise ValueError("prompt_words must be fewer than chunk_words")
        return self

    @property
    def models(self) -> dict[str, str]:
        """The models, by what they are."""
        named = {name: getattr(self, name) for name in MODELS}
        return {name: model for name, model in named.items() if model is not None}

    @property
    def files(self) -> dict[str, str]:
        """The files of texts, by what they are."""
        named = {name: getattr(self, name) for name in ("texts", "holdout", "retain", "questions")}
        return {name: pattern for name, pattern in named.items() if pattern is not None}
