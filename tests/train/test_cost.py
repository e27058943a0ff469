"""Estimates against torch's memory, peft's adapters and published numbers."""

import pytest
import torch

from train.cost import (
    COPY_BYTES,
    LOGIT_BYTES,
    PEAKS,
    activation_bytes,
    adapter_parameters,
    model_states,
    run_cost,
)
from train.execution import ExecutionSettings
from train.models.lora import add_adapters
from train.models.shapes import (
    FAMILIES,
    Shape,
    build_model,
    flops_per_token,
    load_shape,
    matrices,
)
from train.settings import LoraSettings, TrainSettings

SEVEN = load_shape("llama-7b")
ROWS = 32_000
PARAMETERS = 6_738_415_616


def small(architecture: str, **changes: int) -> Shape:
    sizes = {"hidden": 128, "layers": 4, "heads": 4, "intermediate": 384, "context": 256}
    return Shape.model_validate({"architecture": architecture, **sizes, **changes})


def test_zero_stages_partition_moments_then_gradients_then_weights() -> None:
    states = [model_states(100, trained=100, stage=stage, gpus=4) for stage in (0, 1, 2, 3)]
    # Weights, gradients, moments.
    assert states == [600 + 400 + 800, 600 + 400 + 200, 600 + 100 + 200, 150 + 100 + 200]
    assert states[3] == states[0] / 4
    single = [model_states(100, trained=100, stage=stage, gpus=1) for stage in (0, 1, 2, 3)]
    assert len(set(single)) == 1


def test_states_of_a_7b_model_match_the_zero_paper() -> None:
    # ZeRO, figure 1: 120 GB for 7.5 B parameters without partitioning, 1.9 GB on each of 64 GPUs
    # with full partitioning: 16 bytes per parameter, here plus copies of the weights.
    copies = 7.5e9 * COPY_BYTES
    replicated = model_states(7_500_000_000, trained=7_500_000_000, stage=0, gpus=64)
    partitioned = model_states(7_500_000_000, trained=7_500_000_000, stage=3, gpus=64)
    assert replicated - copies == pytest.approx(120e9)
    assert partitioned - copies / 64 == pytest.approx(1.9e9, rel=0.02)


def saved_bytes(shape: Shape, kernel: str, rows: int, windows: int) -> int:
    """Return the bytes that autograd saves in one forward pass, without weights and copies."""
    model = build_model(shape, rows, 0, 0)
    model.set_attn_implementation(kernel)
    model.config.use_cache = False
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    shapes = {weight.shape for weight in model.parameters() if weight.dim() == 2}
    shapes |= {torch.Size(reversed(size)) for size in shapes}
    storages: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights and tensor.shape not in shapes:
            storages[storage.data_ptr()] = storage
        return tensor

    ids = torch.zeros(windows, shape.context, dtype=torch.int64)
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", dtype=torch.bfloat16),
    ):
        model(input_ids=ids, labels=ids)
    return sum(storage.nbytes() for storage in storages.values())


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_activation_estimate_matches_what_autograd_keeps(architecture: str, kernel: str) -> None:
    grouped = {} if architecture == "gpt_neox" else {"kv_heads": 2}
    shape = small(architecture, intermediate=384 if grouped else 512, **grouped)
    measured = saved_bytes(shape, kernel, rows=64, windows=2)
    estimate = activation_bytes(shape, 64, context=256, windows=2, scores_kept=kernel == "eager")
    assert 0.85 < estimate / measured < 1.2


def test_checkpointing_keeps_the_inputs_of_blocks_and_one_block() -> None:
    shape = small("llama")
    deep = small("llama", layers=5)
    whole = activation_bytes(shape, 64, context=256)
    again = activation_bytes(shape, 64, context=256, gradient_checkpointing=True)
    logits = 256 * LOGIT_BYTES * 64
    assert again - logits == 256 * 4 * 128 * 4 + (whole - logits) / 4
    one_more = activation_bytes(deep, 64, context=256, gradient_checkpointing=True)
    assert one_more - again == 256 * 4 * 128


@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_adapter_sizes_match_peft(architecture: str) -> None:
    shape = small(architecture) if architecture == "gpt_neox" else small(architecture, kv_heads=2)
    targets = tuple(matrices(shape))
    for settings in (LoraSettings(rank=3), LoraSettings(rank=2, target_modules=targets)):
        adapted = add_adapters(build_model(shape, 64, 0, 0), settings, seed=0)
        trained = sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad)
        assert adapter_parameters(shape, settings) == trained


def test_cost_of_llama_7b_matches_a_manual_calculation() -> None:
    tokens = 27_000_000
    settings = TrainSettings(context=2048)
    cost = run_cost(
        SEVEN,
        ROWS,
        settings,
        ExecutionSettings(),
        tokens=tokens,
        peak=PEAKS["a100"],
        utilisation=0.5,
    )
    weights = PARAMETERS - ROWS * 4096
    flops = tokens * (6 * weights + 12 * 32 * 4096 * 2048)
    assert cost.flops == pytest.approx(flops)
    assert cost.flops == tokens * flops_per_token(SEVEN, ROWS, 2048)
    assert cost.gpu_seconds == pytest.approx(flops / 156e12)
    assert cost.disk == 4 * PARAMETERS
    assert (cost.parameters, cost.trained) == (PARAMETERS, PARAMETERS)
    again = run_cost(
        SEVEN, ROWS, settings, ExecutionSettings(gradient_checkpointing=True), tokens=tokens
    )
    assert again.flops == cost.flops
    assert again.activations < cost.activations / 4
