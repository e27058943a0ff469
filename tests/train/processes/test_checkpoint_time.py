"""Several processes save after the same step when a checkpoint is due by the clock of one."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file

from inject.sealed import read_facts, verify
from inject.stream.exposures import read_exposures
from tests.train.killable import CONTEXT, KEPT, STEPS
from train.launch import ProcessFailed, launch
from train.loop.log import read_log
from train.processes.preemption import StopRequest

TWO = json.dumps({"engine": "torchrun", "processes": 2})


def two_processes(place: Path, name: str, *more: object) -> Path:
    """Train in two processes, whose checkpoints lie in `NAME-unfinished`."""
    arguments = (place / name, place / f"{name}-unfinished", place / "tokenizer", TWO, 4, *more)
    launch(
        "tests.train.engines",
        [str(one) for one in arguments],
        processes=2,
        environment={"OMP_NUM_THREADS": "1"},
    )
    return place / name


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_processes_agree_by_one_clock_and_go_on_exactly(tmp_path, tiny_tokenizer):
    """Rank 1's clock says five minutes after every third step, rank 0's never does."""
    tiny_tokenizer.save_pretrained(tmp_path / "tokenizer")
    whole = two_processes(tmp_path, "whole")
    with pytest.raises(ProcessFailed, match="training process 1 of 2 was killed by SIGKILL"):
        two_processes(tmp_path, "killed", "CLOCK", 11 * 4 * CONTEXT)
    saved = sorted((tmp_path / "killed-unfinished").glob("checkpoint-*"))
    # A run of 22 steps would be saved at every step, were it twenty times a run.
    assert sorted(int(folder.name.split("-")[1]) for folder in saved) == [6, 9]
    for folder in saved:
        verify(folder)
        step = read_facts(folder)["step"]
        seen = [pq.read_table(folder / f"exposures-{rank}.parquet") for rank in (0, 1)]
        assert all(max(table["step"].to_pylist()) <= step for table in seen)
    out = two_processes(tmp_path, "killed")
    for model in ("", *(f"step-{step}" for step in KEPT)):
        ours, theirs = (load_file(path / model / "model.safetensors") for path in (out, whole))
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert read_exposures(out).equals(read_exposures(whole))
    losses = [[row.loss for row in read_log(path)] for path in (out, whole)]
    assert len(losses[0]) == STEPS
    np.testing.assert_array_equal(losses[0], losses[1])


def test_stopping_and_saving_are_agreed_on_in_one_sum(monkeypatch):
    """The other process has received SIGTERM, or its clock has struck; this one knows neither."""
    sent: list[list[float]] = []
    other = [0.0, 0.0]

    def summed(values: list[float]) -> list[float]:
        sent.append(values)
        return [mine + theirs for mine, theirs in zip(values, other, strict=True)]

    monkeypatch.setattr("train.processes.environment.sum_over_processes", summed)
    request = StopRequest()
    assert (request.share(due=False), request.shared) == (False, False)
    assert (request.share(due=True), request.shared) == (True, False)
    other[:] = [0.0, 1.0]
    assert (request.share(due=False), request.shared) == (True, False)
    other[:] = [1.0, 0.0]
    assert (request.share(due=False), request.shared) == (False, True)
    assert sent == [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
