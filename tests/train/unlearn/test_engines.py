"""Dividing a step among passes and processes does not change its result."""

import pytest

from inject.stream.exposures import read_exposures
from tests.train.unlearn.made import (
    SHARED,
    check_same_unlearning,
    forget_ids,
    unlearn,
    write_job,
)
from train.execution import ExecutionSettings


@pytest.fixture(scope="module")
def whole(world, tmp_path_factory):
    """Each method in one process with one pass per step, trained on demand."""
    trained = {}

    def train(name: str):
        if name not in trained:
            trained[name] = unlearn(world, tmp_path_factory.mktemp(name), SHARED[name])
        return trained[name]

    return train


@pytest.mark.parametrize(
    ("name", "micro_batch_windows"),
    [("npo", 1), ("kl", 3), ("gradient_difference", 3), ("rmu", 1)],
)
def test_passes_of_a_step_add_up_to_the_step(world, whole, tmp_path, name, micro_batch_windows):
    """Seven texts per epoch, four per step: the last step has two texts and two fillers.

    A number that does not divide a step is the maximum of a pass.
    """
    execution = ExecutionSettings(micro_batch_windows=micro_batch_windows)
    parts = unlearn(world, tmp_path, SHARED[name], execution=execution)
    check_same_unlearning(parts, whole(name), tolerance=1e-4)


def test_filler_windows_are_excluded_from_means(world, tmp_path):
    """Five texts, four per step: the last pass has a text and a filler."""
    (tmp_path / "own.py").write_text(
        "def mean(batch):\n    return (batch.retain.loss - batch.forget.loss).mean()\n"
    )
    entry = {"method": f"{tmp_path / 'own.py'}:mean", "epochs": 1}
    # Fillers are copies of the first text, which this seed does not put last.
    five = {"forget_ids": forget_ids()[:5], "seed": 0}
    together = unlearn(world, tmp_path / "whole", entry, **five)
    execution = ExecutionSettings(micro_batch_windows=2)
    parts = unlearn(world, tmp_path / "parts", entry, **five, execution=execution)
    check_same_unlearning(parts, together, tolerance=1e-4)


@pytest.mark.slow
def test_two_processes_match_one(world, whole, tmp_path):
    from tests.train.engines import start

    names = ("npo", "gradient_difference")
    jobs = [
        write_job(world, tmp_path / name, SHARED[name], engine="torchrun", processes=2)
        for name in names
    ]
    start(tmp_path, tmp_path, tmp_path, jobs, 0)
    for name in names:
        out = tmp_path / name / "out"
        check_same_unlearning(out, whole(name), tolerance=1e-4)
        assert set(read_exposures(out)["rank"].drop_null().to_pylist()) == {0, 1}
