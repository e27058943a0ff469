"""An unlearning method: its loss, its settings, and its inputs.

A loss is a function from an `UnlearningBatch` to one number per text, [texts]; the loop computes
their mean over the optimiser step. A user's plain function is also a method (`method_of`).

Steps are counted in texts: `batch_texts` pieces of the forget set make an optimiser step, each with
the further texts that the method needs. The shipped values of each method, with their sources, are
in `configs/unlearn/NAME.yaml`. Nothing here imports torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

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

    from train.unlearn.batch import FedTexts, Role, UnlearningBatch

    Weights = Mapping[str, torch.Tensor]
    Ask = Callable[[torch.Tensor], torch.Tensor]


Tensor: TypeAlias = "torch.Tensor"
Texts: TypeAlias = "FedTexts"
Batch: TypeAlias = "UnlearningBatch"
"""Names for annotations; torch is not imported for them."""
Reduction = Literal["sum", "mean"]
LossOn = Literal["all", "answer"]


class MethodSettings(Settings):
    """Settings for training a model to forget."""

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
    """Decoupled weight decay of matrices and embeddings."""
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    """Decay rates of AdamW's two moment estimates."""
    max_grad_norm: PositiveFloat | None = 1.0
    """Largest norm of the gradient; null clips nothing."""
    mode: Literal["full", "lora"] = "full"
    """`full`: all weights; `lora`: adapters on frozen weights, merged at the end."""
    lora: LoraSettings | None = None
    """Adapters of the mode `lora`; null uses the defaults."""
    precision: Precision = "auto"
    """Arithmetic of the forward passes, as in `train`; weights stay float32."""
    context: Context = 512
    """Longest piece in tokens; longer texts are cut into pieces of at most this length, which never
    exceed the model's positions."""
    loss_on: LossOn = "all"
    """Tokens of a text with a loss: `all`, or those of its `answer`, by the spans recorded with the
    examples (all tokens for texts without one)."""

    @model_validator(mode="after")
    def _adapters_fit_the_mode(self) -> "MethodSettings":
        if self.lora is not None and self.mode != "lora":
            raise ValueError(f"lora requires mode: lora; this one is {self.mode}")
        return self

    def training(self, length: int) -> TrainSettings:
        """Return these settings as the loop's.

        Args:
            length: tokens of the longest piece, to which all are padded.
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
    """Weight of the term on retain texts; if 0 is the default, 0 uses none."""


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
"""From a batch to the loss of each text, [texts]; or to one number, their mean: the loss of a step
in several passes is the mean of these, weighted by their numbers of texts."""


@dataclass(frozen=True, kw_only=True)
class UnlearningMethod:
    """An unlearning method.

    `loss` and `name` suffice for a method that sees the forget texts; each further field requires
    more, at the cost that it states.
    """

    name: str
    """Name in experiment files and tables."""
    loss: Loss
    """The loss to minimise."""
    settings: type[MethodSettings] = MethodSettings
    """Its hyper-parameters, with their defaults."""
    roles: Callable[[Any], tuple["Role", ...]] = lambda settings: ("forget",)
    """From the settings to the texts that a loss sees; each role adds one row to the forward pass.
    `retain` needs a retain set."""
    reference: Callable[[Any], bool] = lambda settings: False
    """Whether the texts' log-probabilities under the original are needed: one forward pass over
    the forget set, before training."""
    prompt_tokens: Callable[[Any], int] = lambda settings: 32
    """Maximum prompt tokens of `alternative` texts, if no answer is recorded."""
    original: Callable[[Any], bool] = lambda settings: False
    """Whether the original model is queried in each step: one more copy of the weights (none with
    LoRA), and the forward passes that the loss makes."""
    hidden_layer: Callable[[Any], int] | None = None
    """The block (from 0) whose output the loss uses instead of logits; later blocks are not
    computed."""
    trained: Callable[["PreTrainedModel", Any], tuple[str, ...]] | None = None
    """From the model to the names of the trained weights; None for all."""
    constants: Callable[["PreTrainedModel", Any, int], Mapping[str, "torch.Tensor"]] | None = None
    """From model, settings and seed to constants of the run."""
    first: Callable[[Any], MethodSettings] | None = None
    """From the settings to those of a preceding model, trained by the same loss, which knows the
    forget set even better."""
    whole_steps: bool = False
    """Whether every optimiser step sees each forget text once, for any number of texts, instead of
    `batch_texts`."""
    labels: Callable[["Ask", "Ask", "torch.Tensor", Any], "torch.Tensor"] | None = None
    """New labels of the forget texts, [texts, length], from the original's logits, those of the
    first stage's model, the ids and the settings; computed once."""
    finish: Callable[["Weights", "Weights", Any], "Weights"] | None = None
    """From the original's and the trained weights to those of the unlearned model."""

    def needs_retain(self, settings: MethodSettings) -> bool:
        """Return whether it requires a retain set."""
        return "retain" in self.roles(settings)


def retained_if_weighted(settings: TwoTermSettings) -> tuple["Role", ...]:
    """Return the roles of a method that uses retain texts if they have a weight."""
    return ("forget", "retain") if settings.retain_weight > 0 else ("forget",)


def method_of(function: Loss, name: str) -> UnlearningMethod:
    """Return the method of a plain loss, which sees forget and retain texts."""
    return UnlearningMethod(name=name, loss=function, roles=lambda settings: ("forget", "retain"))
