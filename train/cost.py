"""The cost of a training run: memory of a GPU, operations, disk and GPU-hours.

Model states by ZeRO stage are exact for what they count (Rajbhandari et al. 2020, ZeRO, section 3
and figure 1). Activations follow the counts of Korthikanti et al. 2022 (Reducing Activation
Recomputation, section 4.1), for gated layers and grouped heads as well, without dropout; kernels
and buffers are additional, so a GPU should have a tenth more.

Model FLOPs utilisation counts the operations that training needs, without recomputed activations
(Chowdhery et al. 2022, PaLM, appendix B), gradients of frozen weights, and gradients before the
first trained weight. NaN if the family, the device or the precision is unknown.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import torch

from train.execution import ExecutionSettings
from train.models.model_sizes import sizes_of_config
from train.models.shapes import FAMILIES, Shape, flops_per_token, matrices, parameter_count
from train.settings import LoraSettings, TrainSettings

Stage = Literal[0, 1, 2, 3]
STAGES: tuple[Stage, ...] = (0, 1, 2, 3)

PEAKS: Mapping[str, float] = {"a100": 312e12, "h100": 989.4e12, "h200": 989.4e12}
"""Dense bfloat16 operations per second of one GPU (NVIDIA's data sheets, SXM, no sparsity)."""
MEMORY: Mapping[str, float] = {"a100": 80e9, "h100": 80e9, "h200": 141e9}
"""Bytes of one GPU, of its largest version."""
UTILISATION = 0.4
"""Share of the peak that a plan assumes: model FLOPs utilisation."""

WEIGHT_BYTES = 4
GRADIENT_BYTES = 4
MOMENT_BYTES = 8
"""Weights, gradients and AdamW's two moments are float32; bfloat16 is the arithmetic only."""
COPY_BYTES = 2
"""The bfloat16 copy of a weight, which lives from its use in the forward pass to the backward."""

LOGIT_BYTES = 8
"""A logit in bfloat16, in float32 (overwritten by its gradient), and the gradient in bfloat16."""
LOGIT_TOKENS = 1024
"""Tokens whose logits exist at one time on a GPU (`train.loop.chunked_loss`)."""


def model_states(parameters: int, *, trained: int, stage: Stage, gpus: int) -> float:
    """Return the bytes of the model states on one GPU: weights, gradients and moments.

    ZeRO spreads over the GPUs: stage 1 the moments, 2 the gradients as well, 3 the weights as well.

    Args:
        parameters: of the model, adapters included.
        trained: parameters with gradients and moments.
        stage: ZeRO stage; 0 spreads nothing.
        gpus: number that share the states.
    """
    # In float32, and their copies in bfloat16 while a step runs.
    weights = parameters * (WEIGHT_BYTES + COPY_BYTES) / (gpus if stage >= 3 else 1)
    gradients = trained * GRADIENT_BYTES / (gpus if stage >= 2 else 1)
    return weights + gradients + trained * MOMENT_BYTES / (gpus if stage >= 1 else 1)


def adapter_parameters(shape: Shape, settings: LoraSettings) -> int:
    """Return the parameters of LoRA's adapters: rank times (in and out) of each adapted matrix."""
    names = settings.target_modules or FAMILIES[shape.architecture].adapted
    ends = sum(sum(size) for name, size in matrices(shape).items() if name in names)
    return shape.layers * settings.rank * ends


def activation_bytes(
    shape: Shape,
    vocabulary: int,
    *,
    context: int,
    windows: int = 1,
    gradient_checkpointing: bool = False,
    scores_kept: bool = False,
) -> float:
    """Return the bytes of activations that one GPU keeps for the backward pass.

    Matrix products are in bfloat16, the residual stream and the norms in float32. A block keeps,
    for each token: what its norms need (`Family.norm_bytes` times h), queries and the attention's
    output, the latter twice (6 h), keys and values (4 k), and the inner activations of the
    feed-forward layer (4 f; 8 f with a gate). With norms in 16 bits (12 h less for LLaMA) this is
    the paper's count without its dropout masks. Gradient checkpointing keeps only the input of each
    block (4 h), and one block at a time is complete.

    Args:
        shape: h is `hidden`, f `intermediate`, k the width of keys.
        vocabulary: rows of the output layer; logits exist for `LOGIT_TOKENS` at a time.
        context: tokens of a window, T.
        windows: number in one forward pass.
        gradient_checkpointing: gradient checkpointing.
        scores_kept: the kernel `eager`, which keeps each of a heads' scores (6 a T a token); SDPA
            and flash attention compute them again.
    """
    family = FAMILIES[shape.architecture]
    hidden = shape.hidden
    inner = (8 if family.gated else 4) * shape.intermediate
    block = (family.norm_bytes + 6) * hidden + 4 * shape.key_value_width + inner
    if scores_kept:
        block += 6 * shape.heads * context
    blocks = 4 * hidden * shape.layers + block if gradient_checkpointing else block * shape.layers
    tokens = windows * context
    return float(tokens * blocks + min(tokens, LOGIT_TOKENS) * LOGIT_BYTES * vocabulary)


class RunCost(NamedTuple):
    """The cost of one training run, on all GPUs together unless stated otherwise."""

    parameters: int
    trained: int
    flops: float
    """Operations of the model: forward and backward, without the recomputation of gradient
    checkpointing."""
    activations: float
    """Bytes on one GPU."""
    disk: float
    """Bytes of the finished model."""
    gpu_seconds: float
    """Time on one GPU of the given peak; N GPUs take an N-th of it with perfect scaling."""


def run_cost(
    shape: Shape,
    vocabulary: int,
    settings: TrainSettings,
    execution: ExecutionSettings,
    *,
    tokens: int,
    windows: int = 1,
    peak: float = PEAKS["h100"],
    utilisation: float = UTILISATION,
) -> RunCost:
    """Return the cost of a training run.

    Gradient checkpointing adds one more forward pass, a third of all operations.

    Args:
        shape, vocabulary: the model's sizes.
        settings, execution: of the run.
        tokens: tokens seen in all epochs together.
        windows: windows of one forward pass on one GPU.
        peak: operations per second of one GPU.
        utilisation: the achieved share of the peak.
    """
    own, lora = parameter_count(shape, vocabulary), settings.adapters
    adapters = 0 if lora is None else adapter_parameters(shape, lora)
    flops = tokens * flops_per_token(shape, vocabulary, settings.context, adapters)
    return RunCost(
        parameters=own + adapters,
        trained=own if lora is None else adapters,
        flops=flops,
        activations=activation_bytes(
            shape,
            vocabulary,
            context=settings.context,
            windows=windows,
            gradient_checkpointing=execution.gradient_checkpointing,
            scores_kept=execution.attention == "eager",
        ),
        disk=float((own + adapters) * WEIGHT_BYTES),
        gpu_seconds=flops
        * (4 / 3 if execution.gradient_checkpointing else 1)
        / (peak * utilisation),
    )


def operations_per_token(
    model: Any, context: int, *, blocks: int | None = None, extra_passes: float = 0.0
) -> float:
    """Return the floating-point operations of one training token; NaN for unknown families.

    A weight costs 2 in the forward pass, 2 for the gradient passed to earlier layers, and 2 for its
    own gradient; attention 4 h T per block, and twice that backwards. With all weights trained that
    is `train.models.shapes.flops_per_token`.

    Args:
        model: as trained: with adapters, and with untrained weights frozen.
        context: T, tokens of a row.
        blocks: number of computed blocks, without the output layer; None for the whole model.
        extra_passes: tokens of additional forward passes of a copy of the model, per training
            token.
    """
    sizes = sizes_of_config(model.config.get_text_config().to_dict(), source="")
    if sizes is None:
        return float("nan")
    # The layers that use the attention's scores; attention counts at their depth.
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
    return (1 + extra_passes) * forward + backward


def peak_operations(device: "torch.device", *, bfloat16: bool) -> float:
    """Return a device's dense bfloat16 operations per second; NaN if unknown."""
    if device.type != "cuda" or not bfloat16:
        return float("nan")
    import torch

    return peak_of(torch.cuda.get_device_name(device))


def peak_of(name: str) -> float:
    """Return the peak of a GPU by its driver's name, such as `NVIDIA H200`."""
    words = name.lower().replace("-", " ").split()
    return next((peak for gpu, peak in PEAKS.items() if gpu in words), float("nan"))
