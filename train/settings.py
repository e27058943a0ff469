"""Settings of the model and its training: `model:`, `train:` and `base:`.

Steps are counted in windows: `batch_tokens` is a multiple of `context`, so that every optimiser
step sees whole windows. This module does not import torch, so reading an experiment file is fast.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from inject.corpus.tokenizer import LARGEST_VOCABULARY, SMALLEST_VOCABULARY
from inject.errors import InputError
from inject.settings import PositiveFloat, PositiveInt, Settings

Mode = Literal["pretrain", "continue", "finetune", "lora"]
Schedule = Literal["constant", "cosine", "linear"]
Precision = Literal["auto", "fastest", "float32", "bfloat16"]
Share = Annotated[float, Field(ge=0, lt=1)]
Beta = Annotated[float, Field(ge=0, lt=1)]
Context = Annotated[int, Field(ge=2)]
NonNegativeFloat = Annotated[float, Field(ge=0)]

TUNING: tuple[Mode, ...] = ("finetune", "lora")
"""The modes that can train only on answers."""


class TokenizerTraining(Settings):
    """Train a byte-level BPE tokenizer on the corpus sources."""

    vocab_size: Annotated[int, Field(ge=SMALLEST_VOCABULARY, le=LARGEST_VOCABULARY)]
    """Size of the vocabulary: 257 (all bytes and the end token) to 1,048,576."""


class ModelSettings(Settings):
    """The model: a shape trained from scratch, or an existing model; exactly one of the two."""

    shape: str | None = None
    """A built-in model shape such as `llama-1m`, or the path of a YAML file."""
    pretrained: str | None = None
    """A saved causal language model: a folder, a GGUF file (a path, or
    `hf://OWNER/NAME/FILE.gguf`), or a hub id."""
    tokenizer: TokenizerTraining | str | None = None
    """`{vocab_size: N}`, or a path or hub id; optional with `pretrained`, which has its own."""
    revision: str | None = None
    """Branch, tag or commit on the hub; by default the newest."""
    trust_remote_code: bool = False
    """Run Python code from the model's repository; only for authors you trust."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "ModelSettings":
        if (self.shape is None) == (self.pretrained is None):
            combination = "both" if self.shape is not None else "neither"
            raise ValueError(f"give exactly one of shape and pretrained; got {combination}")
        if self.shape is not None and self.tokenizer is None:
            raise ValueError(
                "a model trained from scratch needs a tokenizer: {vocab_size: 4096}, or a path or "
                "hub id"
            )
        if self.shape is not None and self.revision is not None:
            raise ValueError("revision requires pretrained; a shape has none")
        if self.pretrained is not None and isinstance(self.tokenizer, TokenizerTraining):
            raise ValueError(
                "a pretrained model keeps the tokenizer it was trained with; "
                "leave tokenizer out, or name one by path or id"
            )
        return self


class LoraSettings(Settings):
    """Low-rank adapters (Hu et al. 2022) on frozen weights."""

    rank: PositiveInt = 16
    """Rank of the update of each adapted matrix."""
    alpha: PositiveInt = 32
    """The update is scaled by `alpha` over `rank`."""
    dropout: Share = 0.0
    """Share of an adapter's inputs set to zero while training."""
    target_modules: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Layers to adapt, such as `q_proj`; null: the attention projections in known families,
    otherwise all linear layers except the output."""


Fraction = Annotated[float, Field(gt=0, lt=1)]


class CheckpointSettings(Settings):
    """Intermediate models to keep, as `step-N` next to the trained one; a step in any of the
    lists."""

    steps: tuple[PositiveInt, ...] = ()
    """These optimiser steps."""
    every: PositiveInt | None = None
    """Each step that is a multiple of this."""
    fractions: tuple[Fraction, ...] = ()
    """These shares of all steps, rounded, at least step 1."""
    powers_of_two: PositiveInt | None = None
    """Steps 1, 2, 4, 8 … up to this one, because early steps change most."""
    after_copies: tuple[Annotated[int, Field(ge=0, le=10**15)], ...] = ()
    """Steps counted from the last one that can have a copy, with `placement.stretch` or `between`;
    those beyond the end are dropped with a note."""
    max_kept: PositiveInt | None = None
    """Maximum number to keep: the first and the last, and between them those spaced most evenly
    over the logarithm of the step. The others are never written."""


class TrainSettings(Settings):
    """How a model is trained on the spiked corpus."""

    mode: Mode = "continue"
    """`pretrain`: new weights; `continue` and `finetune`: all weights of the base model, or of
    `pretrained`; `lora`: adapters on its frozen weights."""
    loss_on: Literal["all", "completion"] = "all"
    """Tokens with a loss: `all`, or (`finetune` and `lora`) `completion`: the answers in the
    copies."""
    lora: LoraSettings | None = None
    """Adapters of the mode `lora`; null uses the defaults."""
    separate_documents: bool = False
    """Separate packed documents: attention and positions stay inside a document, whose first token
    is not predicted."""
    lr: PositiveFloat = 1.0e-4
    """Peak learning rate of AdamW (default: Min-K% Prob, section 6)."""
    schedule: Schedule = "constant"
    """Learning rate after warm-up: `constant`, or falling towards zero (`cosine`, `linear`)."""
    warmup: Share = 0.0
    """Share of the optimiser steps with a linearly rising learning rate."""
    epochs: PositiveInt = 1
    """Passes over all windows, each in a different order."""
    context: Context = 256
    """Tokens of one window."""
    batch_tokens: PositiveInt = 4096
    """Tokens of one optimiser step; a multiple of `context`."""
    weight_decay: NonNegativeFloat = 0.1
    """Decoupled weight decay of matrices and embeddings."""
    betas: tuple[Beta, Beta] = (0.9, 0.95)
    """Decay rates of AdamW's two moment estimates."""
    max_grad_norm: PositiveFloat | None = 1.0
    """Largest norm of the gradient; null clips nothing."""
    precision: Precision = "auto"
    """Arithmetic of the forward pass, part of the model's identity; weights remain float32.
    `float32`, `bfloat16`, `auto` (bfloat16 if the GPU supports it), or `fastest` (also on
    processors with avx512_bf16 or amx_bf16)."""
    checkpoints: CheckpointSettings | None = None
    """Intermediate models to keep and score."""

    @model_validator(mode="after")
    def _fits_the_mode(self) -> "TrainSettings":
        if self.loss_on == "completion" and self.mode not in TUNING:
            raise ValueError(
                f"loss_on: completion leaves nothing to learn from the background, and mode "
                f"{self.mode} trains on it; allowed modes: {', '.join(TUNING)}"
            )
        if self.lora is not None and self.mode != "lora":
            raise ValueError(f"lora requires mode: lora; this one is {self.mode}")
        return self

    @model_validator(mode="after")
    def _whole_windows(self) -> "TrainSettings":
        if problem := partial_window(self.batch_tokens, self.context):
            raise ValueError(problem)
        return self

    @property
    def batch_windows(self) -> int:
        """Windows of one optimiser step."""
        return self.batch_tokens // self.context

    @property
    def adapters(self) -> LoraSettings | None:
        """The adapters to train, defaults filled in; None in every mode but `lora`."""
        return (self.lora or LoraSettings()) if self.mode == "lora" else None


class BaseSettings(Settings):
    """The base model: trained once on clean text, shared by all arms."""

    tokens: PositiveInt
    """Size of its training stream in tokens, from the same sources."""
    lr: PositiveFloat = 1.0e-3
    """Peak learning rate of AdamW."""
    schedule: Schedule = "cosine"
    """Course of the learning rate after warm-up."""
    warmup: Share = 0.05
    """Share of the optimiser steps during which the learning rate rises linearly."""
    epochs: PositiveInt = 1
    """Passes over all windows."""
    context: Context | None = None
    """Tokens of one window; null uses that of `train`."""
    batch_tokens: PositiveInt | None = None
    """Tokens of one optimiser step; null uses that of `train`."""
    weight_decay: NonNegativeFloat = 0.1
    """Decoupled weight decay of matrices and embeddings."""
    betas: tuple[Beta, Beta] = (0.9, 0.95)
    """Decay rates of AdamW's two moment estimates."""
    max_grad_norm: PositiveFloat | None = 1.0
    """Largest norm of the gradient; null clips nothing."""
    precision: Precision = "auto"
    """Arithmetic of the forward pass, as in `train`; weights stay float32."""
    separate_documents: bool = False
    """Whether packed documents do not see each other, as in `train`."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of its weights and order of windows, for all arms and seeds."""

    def resolved(self, train: TrainSettings) -> TrainSettings:
        """Return these settings as those of a `pretrain` run, with defaults from `train`.

        Raises:
            InputError: if the batch is not a multiple of the context.
        """
        context = self.context or train.context
        batch_tokens = self.batch_tokens or train.batch_tokens
        if problem := partial_window(batch_tokens, context):
            raise InputError(problem, where="base.batch_tokens")
        own = self.model_dump(exclude={"tokens", "seed", "context", "batch_tokens"})
        return TrainSettings(mode="pretrain", context=context, batch_tokens=batch_tokens, **own)


def partial_window(batch_tokens: int, context: int) -> str | None:
    """Return the problem if a step would contain part of a window, else None."""
    if batch_tokens % context == 0:
        return None
    lower = batch_tokens // context * context
    nearest = f"{lower} or {lower + context}" if lower else f"{context}"
    return (
        f"batch_tokens {batch_tokens} is not a multiple of context {context}; nearest are {nearest}"
    )


def require_positions(context: int, positions: int | None, *, place: str = "train.context") -> None:
    """Check that a window does not exceed the model's positions.

    Raises:
        InputError: if it is longer.
    """
    if positions is not None and context > positions:
        raise InputError(
            f"a context of {context} is more than the model's {positions} positions",
            where=place,
            allowed=f"up to {positions}",
        )


def check_start(model: ModelSettings, *, has_base: bool, mode: str) -> None:
    """Check that the mode, the model and the base model fit together.

    Raises:
        InputError: for a base model in addition to `pretrained`, for a mode that needs an initial
            model if there is none, and for `pretrain` with a model that would be unused.
    """
    if model.pretrained is not None and has_base:
        raise InputError(
            "a pretrained model is its own base",
            where="base",
            hint="Remove base, or use model.shape instead of model.pretrained.",
        )
    if mode != "pretrain" and model.shape is not None and not has_base:
        raise InputError(
            f"{mode} needs a model to start from, and a shape has only new weights",
            where="train.mode",
            hint="Add base: {tokens: N}, give model.pretrained, or set train.mode to pretrain.",
        )
    if mode == "pretrain" and model.pretrained is not None:
        raise InputError(
            "pretrain starts from new weights, and would not use those of model.pretrained",
            where="train.mode",
            hint="Set train.mode to continue, finetune or lora, or give model.shape.",
        )
