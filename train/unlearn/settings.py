"""What every unlearning method can be told; each method adds hyper-parameters of its own.

Steps are counted in texts: `batch_texts` pieces of the forget set make an optimiser step, each with
what the method needs beside it. The shipped values of each method, with their sources, are in
`configs/unlearn/NAME.yaml`. Nothing here imports torch.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from inject.settings import PositiveFloat, PositiveInt, Settings
from train.settings import (
    Beta,
    Context,
    LoraSettings,
    NonNegativeFloat,
    Precision,
    Schedule,
    Share,
    TrainSettings,
)

Reduction = Literal["sum", "mean"]
LossOn = Literal["all", "answer"]


class MethodSettings(Settings):
    """How a model is trained to forget."""

    lr: PositiveFloat = 1.0e-5
    """Peak learning rate of AdamW."""
    epochs: PositiveInt = 5
    """Passes over the forget set."""
    batch_texts: PositiveInt = 32
    """Texts (or pieces of long ones) of the forget set in one optimiser step."""
    schedule: Schedule = "linear"
    """Course of the learning rate after warm-up."""
    warmup: Share = 0.0
    """Share of the optimiser steps during which the learning rate rises linearly."""
    weight_decay: NonNegativeFloat = 0.01
    """Decoupled weight decay on matrices and embeddings, not on norms and biases."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay rates of AdamW's two moment estimates."""
    clip: PositiveFloat | None = 1.0
    """Largest norm of the gradient; null clips nothing."""
    mode: Literal["full", "lora"] = "full"
    """`full`: all weights; `lora`: adapters beside frozen weights, merged at the end."""
    lora: LoraSettings | None = None
    """Adapters of the mode `lora`; null takes the defaults."""
    precision: Precision = "auto"
    """Arithmetic of the forward passes, as in `train`; weights stay float32."""
    context: Context = 512
    """Longest piece in tokens; longer texts are cut into pieces of at most this many, and of no
    more than the model has positions."""
    loss_on: LossOn = "all"
    """Which tokens of a text the losses are on: `all`, or those of its `answer`, by the spans
    recorded with the examples (texts without one take all)."""

    @model_validator(mode="after")
    def _adapters_fit_the_mode(self) -> "MethodSettings":
        if self.lora is not None and self.mode != "lora":
            raise ValueError(f"lora belongs to mode: lora; this one is {self.mode}")
        return self

    def training(self, length: int) -> TrainSettings:
        """Return these settings as the loop's.

        Args:
            length: tokens of the longest piece, to which all are filled up.
        """
        return TrainSettings(
            mode="lora" if self.mode == "lora" else "finetune",
            lora=self.lora,
            lr=self.lr,
            schedule=self.schedule,
            warmup=self.warmup,
            epochs=self.epochs,
            context=length,
            batch_tokens=self.batch_texts * length,
            weight_decay=self.weight_decay,
            betas=self.betas,
            clip=self.clip,
            precision=self.precision,
        )


Weight = Annotated[float, Field(ge=0)]


class TwoTermSettings(MethodSettings):
    """Settings of a method whose loss is a term on forget texts and one on retain texts."""

    forget_weight: Weight = 1.0
    """Weight of the term on forget texts."""
    retain_weight: Weight = 0.0
    """Weight of the term on retain texts; where 0 is the default, 0 looks at none."""


class FullOnly(MethodSettings):
    """Settings of a method that changes the weights themselves."""

    @model_validator(mode="after")
    def _no_adapters(self) -> "FullOnly":
        if self.mode == "lora":
            raise ValueError(
                "mode lora leaves the weights as they are, and this method changes the weights "
                "themselves; allowed: full"
            )
        return self
