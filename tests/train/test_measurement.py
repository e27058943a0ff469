"""The short measurement behind the times of `spikein plan`."""

import pytest
import torch

from train.measurement import _small_enough, training_rate
from train.settings import TrainSettings
from train.shapes import Shape, flops_per_token, load_shape

SETTINGS = TrainSettings(context=64, batch_tokens=256)
TINY = Shape(architecture="llama", hidden=16, layers=2, heads=2, intermediate=32, context=64)


def test_a_small_shape_is_measured_itself():
    state = torch.random.get_rng_state()
    found = training_rate(TINY, 300, SETTINGS)
    assert found.whole
    assert found.flops_per_second > 0
    assert found.steps >= 2
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("name", ["llama-1m", "llama-160m", "llama-7b"])
def test_what_is_measured_is_never_more_than_some_seconds_of_work(name):
    shape = load_shape(f"configs/models/{name}.yaml")
    settings = TrainSettings(context=2048, batch_tokens=2048 * 256)
    small, context, windows = _small_enough(shape, 32_000, settings)
    work = windows * context * flops_per_token(small, 32_000, context)
    assert work <= 2e11
    # The width, which decides the rate, is the shape's own.
    assert (small.hidden, small.intermediate) == (shape.hidden, shape.intermediate)
