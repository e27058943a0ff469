"""Model FLOPs utilisation: operations needed over operations possible."""

import math

import pytest
import torch

from train.cost import PEAKS
from train.loop.record import ModelFlops
from train.mfu import operations_per_token, peak_of, peak_operations
from train.models.shapes import Shape, build_model, flops_per_token

SIZES = {"hidden": 32, "layers": 2, "heads": 2, "intermediate": 48, "context": 64}


@pytest.mark.parametrize("architecture", ["llama", "olmo2", "gpt_neox", "qwen2"])
def test_operations_are_those_of_the_shape(architecture):
    shape = Shape(architecture=architecture, **SIZES)
    model = build_model(shape, 300, 0, 0)
    assert operations_per_token(model, 64) == flops_per_token(shape, 300, 64)


def test_an_unknown_family_has_none():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=50, n_positions=16)
    assert math.isnan(operations_per_token(GPT2LMHeadModel(config), 16))


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
    ],
)
def test_gpus_by_the_names_of_their_drivers(name, gpu):
    assert peak_of(name) == PEAKS[gpu]


def test_nobody_says():
    assert math.isnan(peak_of("NVIDIA A10G"))
    assert math.isnan(peak_operations(torch.device("cpu"), bfloat16=True))


def test_utilisation():
    speed = ModelFlops(operations_per_token=6e9, peak=PEAKS["h200"] * 2)
    assert speed.utilisation(100_000) == pytest.approx(6e14 / (2 * 989.4e12))
    assert math.isnan(ModelFlops().utilisation(100.0))
