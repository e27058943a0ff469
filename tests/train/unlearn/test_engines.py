"""Passes, processes and DeepSpeed share a step out, and change nothing about it."""

import shutil

import numpy as np
import pytest
from safetensors.torch import load_file

from inject.stream.exposures import read_exposures
from tests.train.unlearn.made import forget_ids, unlearn
from train.execution import ExecutionSettings
from train.loop.log import read_log

METHODS = (
    {"method": "npo", "retain_weight": 1.0},
    {"method": "kl"},
    {"method": "gradient_difference", "mode": "lora"},
    {"method": "rmu", "layer": 1},
)


def check_same(one, other, *, tolerance: float) -> None:
    losses, others = ([row.loss for row in read_log(folder)] for folder in (one, other))
    np.testing.assert_allclose(losses, others, rtol=tolerance, atol=tolerance)
    assert [row.tokens for row in read_log(one)] == [row.tokens for row in read_log(other)]
    seen, expected = (read_exposures(folder).drop_columns(["rank"]) for folder in (one, other))
    assert seen.equals(expected)
    weights, exact = (load_file(folder / "model.safetensors") for folder in (one, other))
    assert weights.keys() == exact.keys()
    for name in weights:
        assert (weights[name] - exact[name]).abs().mean() < 2e-4, name


@pytest.mark.parametrize("entry", METHODS, ids=lambda entry: entry["method"])
def test_parts_of_a_step_are_the_step(world, tmp_path, entry):
    """Seven texts an epoch, four a step: the last step has two, and two that fill it up.

    What divides no step is the most that a pass may hold.
    """
    whole = unlearn(world, tmp_path / "whole", entry)
    for device_windows in (1, 3):
        execution = ExecutionSettings(device_windows=device_windows)
        parts = unlearn(world, tmp_path / f"parts-{device_windows}", entry, execution=execution)
        check_same(parts, whole, tolerance=1e-4)


OWN = """
def each(batch):
    return batch.retain.loss - batch.forget.loss


def mean(batch):
    return each(batch).mean()
"""


@pytest.mark.parametrize("name", ["each", "mean"])
def test_the_windows_that_fill_up_a_step_are_in_no_mean(world, tmp_path, name):
    """Five texts, four a step: in the last pass, a text and a filler."""
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    entry = {"method": f"{tmp_path / 'own.py'}:{name}", "epochs": 1}
    # Fillers are copies of the first text, which this seed does not put last.
    five = {"forget_ids": forget_ids()[:5], "seed": 0}
    whole = unlearn(world, tmp_path / "whole", entry, **five)
    parts = unlearn(
        world,
        tmp_path / "parts",
        entry,
        **five,
        execution=ExecutionSettings(device_windows=2),
    )
    check_same(parts, whole, tolerance=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [METHODS[0], METHODS[2]], ids=lambda entry: entry["method"])
def test_two_processes_do_what_one_does(world, tmp_path, entry):
    whole = unlearn(world, tmp_path / "whole", entry)
    two = unlearn(
        world,
        tmp_path / "two",
        entry,
        execution=ExecutionSettings(engine="torchrun", processes=2),
    )
    check_same(two, whole, tolerance=1e-4)
    assert set(read_exposures(two)["rank"].drop_null().to_pylist()) == {0, 1}


@pytest.fixture(scope="module")
def extensions(tmp_path_factory):
    """One folder for what DeepSpeed compiles: a kill there hangs whoever shares it."""
    return tmp_path_factory.mktemp("extensions")


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(shutil.which("g++") is None, reason="DeepSpeed compiles, and there is no g++")
@pytest.mark.parametrize(
    ("zero", "entry"), [(0, METHODS[0]), (2, METHODS[1]), (3, METHODS[0]), (3, METHODS[3])]
)
def test_deepspeed_does_what_one_process_does(
    world, tmp_path, extensions, monkeypatch, zero, entry
):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(extensions))
    whole = unlearn(world, tmp_path / "whole", entry)
    execution = ExecutionSettings(engine="deepspeed", processes=2, zero=zero)
    check_same(unlearn(world, tmp_path / "two", entry, execution=execution), whole, tolerance=1e-3)
