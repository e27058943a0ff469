"""Weights rounded to 8 or 4 bits, stored in a format that any machine supports.

The weight matrices of linear layers, except the output layer, get their rounded values; they are
stored in float32, so a model needs no library of kernels and gives the same scores everywhere. The
same weights are rounded as by default in bitsandbytes; it also rounds activations to 8 bits
(LLM.int8), which is omitted here.

- 8 bits: the nearest multiple of max|w| / 127 in each output row (vector-wise absmax, Dettmers et
  al. 2022, section 2.1).
- 4 bits: the nearest of the 16 values of NormalFloat times max|w| in each block of 64 weights
  (Dettmers et al. 2023, appendix E).

Cost: one pass over the weights.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from inject.errors import InputError
from inject.step import Step, StepContext
from train.models.model_sizes import model_cost
from train.settings import ModelSettings

if TYPE_CHECKING:
    import torch

Bits = Literal["8bit", "4bit"]
BLOCK = 64
NORMAL_FLOAT = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
    -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
    0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""The values of NF4, ascending."""


def rounded_step(model: Step, bits: Bits, sizes: ModelSettings) -> Step:
    """Write a model with its weights rounded.

    Args:
        model: the model.
        bits: the rounding.
        sizes: settings of the model's sizes, for its costs.
    """
    return Step(
        kind="model",
        label=f"{bits}-{model.label}",
        function=f"{__name__}:build",
        settings={"rounded": bits},
        inputs={"model": model},
        libraries=("torch", "transformers"),
        cost=model_cost(sizes),
    )


def build(context: StepContext) -> None:
    """Round the weights, and write the model."""
    write_rounded(context.inputs["model"], context.out, context.settings["rounded"])


def rounded(weight: "torch.Tensor", bits: Bits) -> "torch.Tensor":
    """Return a weight matrix with its values rounded, [rows, columns], in its own number format.

    Args:
        weight: [rows, columns].
        bits: the rounding.
    """
    import torch

    values = weight.float()
    if bits == "8bit":
        scale = _row_maxima(values)
        return (torch.round(values / scale * 127) / 127 * scale).to(weight.dtype)
    flat = values.flatten()
    padded = torch.nn.functional.pad(flat, (0, -len(flat) % BLOCK)).view(-1, BLOCK)
    scale = _row_maxima(padded)
    levels = torch.tensor(NORMAL_FLOAT)
    middles = (levels[1:] + levels[:-1]) / 2
    nearest = levels[torch.bucketize(padded / scale, middles)]
    return (nearest * scale).flatten()[: len(flat)].view_as(values).to(weight.dtype)


def _row_maxima(values: "torch.Tensor") -> "torch.Tensor":
    """Return the largest absolute value of each row, [rows, 1]; 1 if all are zero."""
    largest = values.abs().amax(dim=1, keepdim=True)
    return largest.masked_fill(largest == 0, 1.0)


def write_rounded(source: Path, out: Path, bits: Bits) -> None:
    """Write a model with rounded weights, and its tokenizer.

    Args:
        source: folder of the model.
        out: an empty folder.
        bits: the rounding of its weights.

    Raises:
        InputError: if the only linear layer is the output layer.
    """
    import torch

    from inject.corpus.tokenizer import load_tokenizer
    from train.models.pretrained import load_causal_model
    from train.process_state import plain_transformers

    model = load_causal_model(str(source))
    outside = model.get_output_embeddings()
    linear = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.Linear) and module is not outside
    ]
    if not linear:
        raise InputError(
            "the model has no linear layer whose weights could be rounded", where=str(source)
        )
    with torch.no_grad():
        for module in linear:
            module.weight.copy_(rounded(module.weight, bits))
    with plain_transformers():
        model.save_pretrained(out)
    load_tokenizer(str(source)).save_pretrained(out)
