"""Several processes, and DeepSpeed, against one process: the same windows, losses and ledger."""

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from inject.errors import InputError
from inject.sealed import seal
from inject.stream.exposures import read_exposures
from tests.train.killable import CONTEXT, go
from train.execution import ExecutionSettings
from train.launch import ProcessFailed, launch
from train.loop.log import read_log
from train.loop.record import TrainingProgress
from train.loop.resume import find_resume_point

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory, tiny_tokenizer):
    """A folder with the tokenizer, and one for what DeepSpeed compiles."""
    root = tmp_path_factory.mktemp("engines")
    tiny_tokenizer.save_pretrained(root / "tokenizer")
    return root


@pytest.fixture(scope="module")
def alone(place):
    """The run in this process, for steps of 4 windows and of 6, whose last step is smaller."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for batch in (4, 6):
        go(place / f"alone-{batch}", None, place / "tokenizer", dropout=False, batch_windows=batch)
    torch.set_num_threads(threads)
    return place


def together(
    place: Path,
    name: str,
    execution: dict,
    *,
    batch: int = 4,
    dies_at: int | None = None,
) -> Path:
    arguments = [
        place / name,
        place / f"{name}-unfinished",
        place / "tokenizer",
        json.dumps(execution),
        batch,
        *([] if dies_at is None else ["KILL", dies_at]),
    ]
    launch(
        "tests.train.engines",
        [str(one) for one in arguments],
        processes=execution["processes"],
        # A kill while DeepSpeed compiles leaves a lock that hangs every later run that shares it.
        environment={"OMP_NUM_THREADS": "1", "TORCH_EXTENSIONS_DIR": str(place / "extensions")},
    )
    return place / name


def check_same(one: Path, other: Path, *, tolerance: float) -> None:
    losses, others = ([row.loss for row in read_log(path)] for path in (one, other))
    assert len(losses) == len(others) > 14
    np.testing.assert_allclose(losses, others, rtol=tolerance)
    counts = [[row.tokens for row in read_log(path)] for path in (one, other)]
    assert counts[0] == counts[1]
    seen, expected = (read_exposures(path) for path in (one, other))
    assert seen.drop_columns(["rank"]).equals(expected.drop_columns(["rank"]))
    assert set(seen["rank"].drop_null().to_pylist()) == {0, 1}
    steps = sorted(path.name for path in other.glob("step-*"))
    assert len(steps) >= 3
    assert sorted(path.name for path in one.glob("step-*")) == steps
    for model in ("", *steps):
        weights, exact = (load_file(path / model / "model.safetensors") for path in (one, other))
        assert weights.keys() == exact.keys()
        for name in weights:
            assert weights[name].dtype == torch.float32
            torch.testing.assert_close(weights[name], exact[name], atol=2e-3, rtol=0)
    AutoModelForCausalLM.from_pretrained(one)


@pytest.mark.parametrize(
    ("batch", "more"),
    [(4, {}), (4, {"device_windows": 1}), (6, {}), (6, {"device_windows": 1})],
)
def test_two_processes_do_what_one_does(alone, batch, more):
    """Also in steps of which one process has more windows than the other."""
    name = f"two-{batch}-{len(more)}"
    out = together(alone, name, {"engine": "torchrun", "processes": 2, **more}, batch=batch)
    check_same(out, alone / f"alone-{batch}", tolerance=1e-5)


@pytest.mark.skipif(shutil.which("g++") is None, reason="DeepSpeed compiles, and there is no g++")
@pytest.mark.parametrize(
    ("zero", "offload"), [(0, False), (1, False), (2, False), (2, True), (3, False), (3, True)]
)
@pytest.mark.timeout(400)
def test_deepspeed_does_what_one_process_does(alone, zero, offload):
    execution = {"engine": "deepspeed", "processes": 2, "zero": zero, "offload": offload}
    out = together(alone, f"zero-{zero}-{offload}", execution)
    check_same(out, alone / "alone-4", tolerance=1e-4)


def test_one_of_two_is_killed_and_one_process_goes_on(alone):
    """Killed in the second epoch; taken up by another number of processes."""
    started = time.monotonic()
    execution = {"engine": "torchrun", "processes": 2}
    with pytest.raises(ProcessFailed, match="training process 1 of 2 was killed by SIGKILL"):
        together(alone, "killed", execution, dies_at=14 * 4 * CONTEXT)
    assert time.monotonic() - started < 120
    unfinished = alone / "killed-unfinished"
    point = find_resume_point(unfinished, "this run")
    assert point is not None
    assert 9 <= point.step <= 14
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    go(alone / "gone-on", unfinished, alone / "tokenizer", dropout=False)
    torch.set_num_threads(threads)
    check_same(alone / "gone-on", alone / "alone-4", tolerance=1e-5)


def test_two_processes_take_up_what_one_began(alone):
    class Stop(Exception):
        pass

    def stop(moment: TrainingProgress) -> None:
        if moment.tokens >= 7 * 4 * CONTEXT:
            raise Stop

    unfinished = alone / "begun-unfinished"
    with pytest.raises(Stop):
        go(alone / "x", unfinished, alone / "tokenizer", dropout=False, progress=stop)
    out = together(alone, "begun", {"engine": "torchrun", "processes": 2})
    check_same(out, alone / "alone-4", tolerance=1e-5)


def test_what_deepspeed_saved_in_parts_is_not_taken_for_whole(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoint-3"
    folder.mkdir()
    seal(
        folder,
        {"identity": "this run", "step": 3, "layout": "deepspeed with zero 2 in 4 processes"},
    )
    with pytest.raises(InputError, match="zero 2 in 4 processes, and the run would go on as whole"):
        find_resume_point(tmp_path, "this run")
    same = ExecutionSettings(engine="deepspeed", processes=4, zero=2)
    monkeypatch.setitem(os.environ, "WORLD_SIZE", "4")
    point = find_resume_point(tmp_path, "this run", same)
    assert point is not None
    assert point.step == 3
