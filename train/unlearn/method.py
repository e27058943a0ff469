"""An unlearning method: its loss, its settings, and what it has to be given.

A loss is a function from an `UnlearningBatch` to one number a text, [texts]; the loop takes their
mean over the optimiser step. A plain function of the user's is a method, too (`method_of`).

Steps are counted in texts: `batch_texts` pieces of the forget set make an optimiser step, each with
what the method needs beside it. The shipped values of each method, with their sources, are in
`configs/unlearn/NAME.yaml`. Nothing here imports torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

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

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from train.unlearn.batch import Role, UnlearningBatch

    Weights = Mapping[str, torch.Tensor]
    Ask = Callable[[torch.Tensor], torch.Tensor]


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
            raise ValueError(f"lora requires mode: lora; this one is {self.mode}")
        return self

    def training(self, length: int) -> TrainSettings:
        """Return these settings as the loop's.

        Args:
            length: tokens of the longest piece, to which all are filled up.
        """
        shared = {*MethodSettings.model_fields} & {*TrainSettings.model_fields}
        return TrainSettings.model_validate(
            {
                **self.model_dump(include=shared - {"loss_on"}),
                "mode": "lora" if self.mode == "lora" else "finetune",
                "context": length,
                "batch_tokens": self.batch_texts * length,
            }
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


Loss = Callable[["UnlearningBatch"], "torch.Tensor"]
"""From a batch to the loss of each text, [texts]; or to one number, which stands for their mean: a
step in several passes is the mean of these, by their numbers of texts."""


@dataclass(frozen=True, kw_only=True)
class UnlearningMethod:
    """An unlearning method.

    `loss` and `name` alone make one that sees the forget texts; each further field asks for more,
    and costs what it says.
    """

    name: str
    """In experiment files and tables."""
    loss: Loss
    """What is minimised."""
    settings: type[MethodSettings] = MethodSettings
    """Its hyper-parameters, with their defaults."""
    roles: Callable[[Any], tuple["Role", ...]] = lambda settings: ("forget",)
    """From the settings to the texts that a loss sees; each role is one row more of the forward
    pass. `retain` needs a retain set."""
    reference: Callable[[Any], bool] = lambda settings: False
    """Whether the texts' log-probabilities under the original are needed: one forward pass over
    the forget set, before training."""
    prompt_tokens: Callable[[Any], int] = lambda settings: 32
    """Tokens of the prompt of `alternative` texts at most, where no answer is recorded."""
    original: Callable[[Any], bool] = lambda settings: False
    """Whether the original model is asked in each step: one more copy of the weights (none with
    LoRA), and the forward passes that the loss makes."""
    hidden_layer: Callable[[Any], int] | None = None
    """The block (from 0) whose output the loss looks at in place of logits; blocks behind it are
    not computed."""
    trained: Callable[["PreTrainedModel", Any], tuple[str, ...]] | None = None
    """From the model to the names of the weights that are trained; None for all."""
    constants: Callable[["PreTrainedModel", Any, int], Mapping[str, "torch.Tensor"]] | None = None
    """From model, settings and seed to what stays the same throughout."""
    first: Callable[[Any], MethodSettings] | None = None
    """From the settings to those of a model that is trained before, by the same loss, and so knows
    the forget set even better."""
    whole_steps: bool = False
    """Whether every optimiser step sees each forget text once, however many there are, in place of
    `batch_texts`."""
    labels: Callable[["Ask", "Ask", "torch.Tensor", Any], "torch.Tensor"] | None = None
    """New labels of the forget texts, [texts, length], from the original's logits, those of the
    first stage's model, the ids and the settings; computed once."""
    finish: Callable[["Weights", "Weights", Any], "Weights"] | None = None
    """From the original's weights and the trained ones to those of the unlearned model."""

    def needs_retain(self, settings: MethodSettings) -> bool:
        """Return whether it cannot do without a retain set."""
        return "retain" in self.roles(settings)


def retained_if_weighted(settings: TwoTermSettings) -> tuple["Role", ...]:
    """Return the roles of a method that looks at retain texts where they have a weight."""
    return ("forget", "retain") if settings.retain_weight > 0 else ("forget",)


def method_of(function: Loss, name: str) -> UnlearningMethod:
    """Return the method of a plain loss, which sees forget and retain texts."""
    return UnlearningMethod(name=name, loss=function, roles=lambda settings: ("forget", "retain"))
