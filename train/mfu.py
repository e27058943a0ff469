"""Model FLOPs utilisation: the operations that training needs, over those the devices could make.

Recomputed activations earn nothing (Chowdhery et al. 2022, PaLM, appendix B), and what is not
computed does not either: gradients of frozen weights, and all that lies before the first trained
one. Known where the model's family is one of ours and the device is in `train.cost.PEAKS`, and
arithmetic is in bfloat16, whose peak that is; NaN everywhere else.
"""

import re
from typing import Any

import torch

from train.cost import PEAKS
from train.models.families import FAMILIES
from train.models.model_sizes import sizes_of_config


def operations_per_token(
    model: Any, context: int, *, blocks: int | None = None, asked: float = 0.0
) -> float:
    """Return the floating-point operations of one training token; NaN for unknown families.

    A weight costs 2 in the forward pass, 2 for the gradient that goes on to what lies before it,
    and 2 for its own gradient; attention 4 h T in a block, and twice that backwards. With all
    weights trained that is `train.models.shapes.flops_per_token`.

    Args:
        model: as it is trained: adapters on it, and frozen what is not trained.
        context: T, tokens of a row.
        blocks: that are computed, without the output layer; None for the whole model.
        asked: tokens of a forward pass alone, of a copy of the model, for each training token.
    """
    sizes = sizes_of_config(model.config.get_text_config().to_dict(), source="")
    if sizes is None:
        return float("nan")
    # What the attention's scores are used by; attention counts where it stands.
    behind_scores = FAMILIES[sizes.shape.architecture].adapted[-1]
    embedding = model.get_input_embeddings().weight
    weights = [pair for pair in model.named_parameters() if pair[1] is not embedding]
    if model.get_output_embeddings().weight is embedding:
        weights.append(("output", embedding))
    # The look-up of a token multiplies nothing.
    reached = embedding.requires_grad
    forward = backward = 0.0
    for name, weight in weights:
        block = re.search(r"\.layers\.(\d+)\.", name)
        if blocks is not None and (block is None or int(block[1]) >= blocks):
            continue
        if re.search(rf"\.{behind_scores}\.(base_layer\.)?weight$", name):
            forward += 4.0 * sizes.shape.hidden * context
            backward += 8.0 * sizes.shape.hidden * context * reached
        forward += 2.0 * weight.numel()
        backward += 2.0 * weight.numel() * (reached + weight.requires_grad)
        reached |= weight.requires_grad
    return (1 + asked) * forward + backward


def peak_operations(device: torch.device, *, bfloat16: bool) -> float:
    """Return a device's dense bfloat16 operations a second; NaN where it is not known."""
    if device.type != "cuda" or not bfloat16:
        return float("nan")
    return peak_of(torch.cuda.get_device_name(device))


def peak_of(name: str) -> float:
    """Return the peak of a GPU by the name that its driver gives, such as `NVIDIA H200`."""
    words = name.lower().replace("-", " ").split()
    return next((peak for gpu, peak in PEAKS.items() if gpu in words), float("nan"))
