"""The short measurement from which `spikein plan` estimates times."""

import pytest
import torch

from spikein.estimates.step_times import shrink_to_fit, training_rate
from tests.train.shapes import tiny_shape
from train.models.shapes import load_shape
from train.settings import TrainSettings

SETTINGS = TrainSettings(context=64, batch_tokens=256)


def test_a_small_shape_is_measured_itself():
    state = torch.random.get_rng_state()
    rate = training_rate(tiny_shape(), 300, SETTINGS)
    assert rate.whole
    assert rate.flops_per_second > 0
    assert rate.steps >= 2
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("name", ["llama-1m", "llama-7b", "pythia-6.9b", "qwen2-7b"])
def test_the_measurement_takes_about_a_second_at_most(name):
    shape = load_shape(name)
    settings = TrainSettings(context=2048, batch_tokens=2048 * 256)
    sample = shrink_to_fit(shape, 32_000, settings)
    assert sample.fits
    assert sample.flops <= 4e10
    assert sample.parameters <= 30_000_000
    # Heads keep their size, and the feed-forward layer its proportion.
    assert sample.shape.hidden / sample.shape.heads == shape.hidden / shape.heads
    assert sample.shape.intermediate / sample.shape.hidden == pytest.approx(
        shape.intermediate / shape.hidden, rel=0.01
    )


def test_a_large_shape_is_measured_by_a_smaller_one_that_can_be_built():
    rate = training_rate(load_shape("qwen2-7b"), 152_064, SETTINGS)
    assert not rate.whole
    assert rate.flops_per_second > 0
