"""Several processes and DeepSpeed against one process: same windows, losses and ledger."""

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from inject.errors import InputError
from inject.stream.exposures import read_exposures
from inject.verified_files import read_facts, seal, verify
from tests.train.unlearn.made import SHARED, check_same_unlearning, unlearn, write_job
from train.execution import ExecutionSettings
from train.loop.log import read_log
from train.loop.resume import find_resume_point

pytestmark = pytest.mark.slow
BATCH = 6
"""Windows per step; the last step is smaller and unevenly divided between processes."""
TWO = {"engine": "torchrun", "processes": 2, "micro_batch_windows": 1}


@pytest.fixture(scope="module")
def place(tmp_path_factory, tokenizer) -> Path:
    """The run in this process (`single`), and its state after step 4 (`begun`)."""
    from tests.train.killable import Stopped, stop_at, train_run

    root = tmp_path_factory.mktemp("engines")
    run = {"dropout": False, "batch_windows": BATCH}
    train_run(root / "single", None, tokenizer, **run)
    with pytest.raises(Stopped):
        train_run(root / "x", root / "begun", tokenizer, progress=stop_at(4, BATCH), **run)
    assert [path.name for path in root.glob("begun/checkpoint-*")] == ["checkpoint-3"]
    return root


def check_same(out: Path, single: Path, *, tolerance: float) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    losses, others = ([row.loss for row in read_log(path)] for path in (out, single))
    assert len(losses) == len(others) > 14
    np.testing.assert_allclose(losses, others, rtol=tolerance)
    counts = [[row.tokens for row in read_log(path)] for path in (out, single)]
    assert counts[0] == counts[1]
    seen, expected = (read_exposures(path) for path in (out, single))
    assert seen.drop_columns(["rank"]).equals(expected.drop_columns(["rank"]))
    assert set(seen["rank"].drop_null().to_pylist()) == {0, 1}
    steps = sorted(path.name for path in single.glob("step-*"))
    assert len(steps) >= 3
    assert sorted(path.name for path in out.glob("step-*")) == steps
    for model in ("", *steps):
        weights, exact = (load_file(path / model / "model.safetensors") for path in (out, single))
        assert weights.keys() == exact.keys()
        for name in weights:
            assert weights[name].dtype == torch.float32
            torch.testing.assert_close(weights[name], exact[name], atol=2e-3, rtol=0)
    AutoModelForCausalLM.from_pretrained(out)


@pytest.mark.timeout(300)
def test_two_processes_resume_other_runs_with_a_common_clock(place, tokenizer):
    """One process begins and two resume; one of two others is killed, and two or one resume.

    The same two processes resume one run after the other. Only rank 1's clock reports that five
    minutes have passed, after every third step.
    """
    from tests.train.engines import start
    from tests.train.killable import CONTEXT, check_same_run, train_run
    from train.launch import ProcessFailed

    whole, killed = place / "whole", place / "whole-1"
    left = place / "whole-left-1"
    for unfinished in (place / "whole-left", left):
        shutil.copytree(place / "begun", unfinished)
    started = time.monotonic()
    with pytest.raises(ProcessFailed, match="training process 1 of 2 was killed by SIGKILL"):
        start(killed, left, tokenizer, [TWO], BATCH, "CLOCK", 8 * BATCH * CONTEXT)
    assert time.monotonic() - started < 120
    saved = {int(folder.name.split("-")[1]): folder for folder in left.glob("checkpoint-*")}
    # Twenty checkpoints per run would save this run of 15 steps at every step.
    assert sorted(saved) == [4, 7]
    for step, folder in saved.items():
        verify(folder)
        assert read_facts(folder)["step"] == step
        seen = [pq.read_table(folder / f"exposures-{rank}.parquet") for rank in (0, 1)]
        assert all(max(table["step"].to_pylist(), default=0) <= step for table in seen)
    shutil.copytree(left, place / "single-left")
    start(whole, place / "whole-left", tokenizer, [TWO, TWO], BATCH)
    check_same(whole, place / "single", tolerance=1e-5)
    check_same_run(killed, whole)
    out = place / "resumed"
    train_run(out, place / "single-left", tokenizer, dropout=False, batch_windows=BATCH)
    check_same(out, place / "single", tolerance=1e-5)


@pytest.mark.timeout(400)
def test_deepspeed_matches_one_process(place, tokenizer, world, tmp_path):
    """ZeRO stages, offloading and unlearning methods, in the same two processes."""
    from tests.train.engines import start

    stages = [(0, False), (1, False), (2, True), (3, False), (3, True)]
    engines = [
        {"engine": "deepspeed", "processes": 2, "zero": zero, "offload": offload}
        for zero, offload in stages
    ]
    methods = [(0, SHARED["npo"]), (2, SHARED["kl"]), (3, SHARED["npo"]), (3, SHARED["rmu"])]
    jobs = [
        write_job(world, tmp_path / f"job-{at}", entry, engine="deepspeed", processes=2, zero=zero)
        for at, (zero, entry) in enumerate(methods)
    ]
    start(place / "zero", place / "zero-left", tokenizer, [*engines, *jobs], BATCH)
    for number in range(len(stages)):
        out = place / (f"zero-{number}" if number else "zero")
        check_same(out, place / "single", tolerance=1e-4)
    for at, (_, entry) in enumerate(methods):
        single = unlearn(world, tmp_path / f"single-{at}", entry)
        check_same_unlearning(tmp_path / f"job-{at}" / "out", single, tolerance=1e-3)


def test_partitioned_deepspeed_checkpoints_are_not_resumed_as_whole(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoint-3"
    folder.mkdir()
    seal(
        folder,
        {"identity": "this run", "step": 3, "layout": "deepspeed with zero 2 in 4 processes"},
    )
    with pytest.raises(InputError, match="4 processes, and the run would resume as whole"):
        find_resume_point(tmp_path, "this run")
    same = ExecutionSettings(engine="deepspeed", processes=4, zero=2)
    monkeypatch.setitem(os.environ, "WORLD_SIZE", "4")
    point = find_resume_point(tmp_path, "this run", same)
    assert point is not None
    assert point.name == "checkpoint-3"
