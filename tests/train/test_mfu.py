"""Model FLOPs utilisation: required operations divided by possible operations.

The oracle is torch's counter of matrix products in a forward and backward pass.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import GPT2Config, GPT2LMHeadModel

from train.cost import (
    PEAKS,
    adapter_parameters,
    operations_per_token,
    peak_of,
    peak_operations,
)
from train.execution import ExecutionSettings
from train.loop.preparation import prepare
from train.loop.training_loop import _mfu_share
from train.models.lora import add_adapters
from train.models.shapes import Shape, build_model, flops_per_token, matrices
from train.settings import LoraSettings, TrainSettings
from train.unlearn.registry import parse_methods
from train.unlearn.stages import method_objective
from train.unlearn.texts import Piece, UnlearningTexts

LARGER = {"hidden": 128, "layers": 12, "heads": 4, "intermediate": 320, "context": 96}
ROWS, CONTEXT = 200, 96


def larger(architecture: str, **more: bool):
    shape = Shape(architecture=architecture, **LARGER, **more)
    model = build_model(shape, ROWS, 0, 0)
    # The counter only sees the attention products of the eager implementation.
    model.set_attn_implementation("eager")
    return shape, model


def count_operations_per_token(step, tokens: int) -> float:
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops() / tokens


def ids() -> torch.Tensor:
    return torch.arange(2 * CONTEXT).reshape(2, CONTEXT) % ROWS


@pytest.mark.parametrize("architecture", ["llama", "gpt_neox"])
@pytest.mark.parametrize("tied", [False, True])
def test_operations_match_the_count_of_torch(architecture, tied):
    _, model = larger(architecture, tie_embeddings=tied)
    operations = count_operations_per_token(
        lambda: model(input_ids=ids(), labels=ids()).loss.backward(), 2 * CONTEXT
    )
    assert operations_per_token(model, CONTEXT) == pytest.approx(operations, rel=0.02)


@pytest.mark.parametrize("architecture", ["llama", "gpt_neox"])
@pytest.mark.parametrize("all_targets", [False, True])
def test_frozen_weights_below_adapters_have_no_gradients(architecture, all_targets):
    shape, model = larger(architecture)
    lora = LoraSettings(rank=4, target_modules=tuple(matrices(shape)) if all_targets else None)
    whole = operations_per_token(model, CONTEXT)
    adapted = add_adapters(model, lora, seed=0)
    operations = count_operations_per_token(
        lambda: adapted(input_ids=ids(), labels=ids()).loss.backward(), 2 * CONTEXT
    )
    # Some gradients of the first block are unnecessary because none reaches the embedding.
    assert operations_per_token(adapted, CONTEXT) == pytest.approx(operations, rel=0.03)
    planned = flops_per_token(shape, ROWS, CONTEXT, adapter_parameters(shape, lora))
    assert planned == pytest.approx(operations, rel=0.04)
    assert whole / operations > 1.2


def unlearning(model, entry):
    (setting,) = parse_methods([entry])
    roles = setting.method.roles(setting.settings)

    def pieces(first: int) -> list[Piece]:
        numbers = (np.arange(CONTEXT, dtype=np.int64) + first) % ROWS
        place = {"dataset": "made", "index": 0, "start": 0, "text_length": CONTEXT}
        return [Piece(example_id=str(first), ids=numbers, labels=numbers, **place)]

    texts = UnlearningTexts(
        forget=pieces(0), retain=pieces(7), roles=roles, length=CONTEXT, end=0, seed=0
    )
    objective = method_objective(SimpleNamespace(seed=0), setting, texts, model)
    objective.begin(model)
    return objective


@pytest.mark.parametrize(
    ("entry", "too_high"),
    [
        ({"method": "rmu", "layer": 3, "layers": 2}, 2),
        ({"method": "rmu", "layer": 0, "layers": 3}, 10),
        ({"method": "kl"}, 0.8),
        ({"method": "gradient_difference"}, 0.99),
    ],
)
def test_unlearning_operations_match_the_count_of_torch(entry, too_high):
    _, model = larger("llama")
    whole = operations_per_token(model, CONTEXT)
    objective = unlearning(model, entry)
    arrays = objective.inputs(0, 0)
    inputs = {name: torch.from_numpy(value)[None] for name, value in arrays.items()}
    operations = count_operations_per_token(
        lambda: objective.losses(model, inputs).mean().backward(), objective.window_tokens
    )
    stated = operations_per_token(
        model, CONTEXT, blocks=objective.blocks, extra_passes=objective.asked
    )
    assert stated == pytest.approx(operations, rel=0.02)
    assert whole / operations > too_high


def test_training_loop_counts_the_trained_model(monkeypatch):
    monkeypatch.setattr("train.loop.training_loop.peak_operations", lambda *_, **__: 2e9)

    def loops(mode: str, entry=None) -> float:
        settings = TrainSettings(mode=mode, lr=1e-3, context=CONTEXT, batch_tokens=2 * CONTEXT)
        prepared = prepare(larger("llama")[1], settings, ExecutionSettings(), seed=0)
        objective = None if entry is None else unlearning(prepared.model, entry)
        return _mfu_share(prepared, objective, CONTEXT)

    whole = loops("finetune")
    assert whole == pytest.approx(operations_per_token(larger("llama")[1], CONTEXT) / 2e9)
    assert whole / loops("lora") > 1.2
    assert whole / loops("finetune", {"method": "rmu", "layer": 3, "layers": 2}) > 4


def test_peak_is_found_by_the_gpu_name():
    assert peak_of("NVIDIA H200") == PEAKS["h200"]
    assert peak_of("NVIDIA H100 80GB HBM3") == PEAKS["h100"]
    assert peak_of("NVIDIA A100-SXM4-80GB") == PEAKS["a100"]
    assert math.isnan(peak_of("NVIDIA A10G"))
    assert math.isnan(peak_operations(torch.device("cpu"), bfloat16=True))
    unknown = GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=50, n_positions=16)
    assert math.isnan(operations_per_token(GPT2LMHeadModel(unknown), 16))
