"""Faults of a training run: their messages and the checkpoints they leave."""

import errno
from pathlib import Path

import numpy as np
import pytest
import torch

from inject.errors import InputError
from tests.train.killable import train_run
from train.execution import ExecutionSettings
from train.loop.errors import OutOfMemory, explain_faults
from train.loop.record import Record, TrainingDiverged
from train.settings import TrainSettings

SETTINGS = TrainSettings(context=64, batch_tokens=512)


def raised(error: Exception, tmp_path: Path, **execution) -> Exception:
    with (
        pytest.raises(Exception) as caught,  # noqa: PT011
        explain_faults(SETTINGS, ExecutionSettings(**execution), None, tmp_path),
    ):
        raise error
    return caught.value


def test_torch_allocation_failure_on_a_cpu_is_explained(tmp_path):
    """The error is real: the allocation exceeds the memory."""
    with (
        pytest.raises(
            OutOfMemory, match=r"training_runtime\.micro_batch_windows: 4 \(now 8 on a device\)"
        ),
        explain_faults(SETTINGS, ExecutionSettings(), None, tmp_path),
    ):
        torch.empty(1 << 50, dtype=torch.float32)


def test_memory_advice_lists_only_settings_that_can_be_lowered(tmp_path):
    error = raised(
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore"),
        tmp_path,
        engine="deepspeed",
        processes=8,
        zero=2,
        gradient_checkpointing=True,
        micro_batch_windows=1,
    )
    text = str(error)
    assert isinstance(error, OutOfMemory)
    assert "Tried to allocate 2 GiB\n" in text
    assert "more" not in text
    assert "micro_batch_windows" not in text
    assert "gradient_checkpointing" not in text
    assert "training_runtime: {zero: 3, offload: true}" in text
    assert isinstance(raised(MemoryError(), tmp_path), OutOfMemory)


def test_a_full_disk_is_recognised_from_any_error(tmp_path):
    class FromSafetensors(Exception):
        pass

    for error in (
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        FromSafetensors("I/O error: No space left on device (os error 28)"),
    ):
        explained = raised(error, tmp_path)
        assert isinstance(explained, InputError)
        assert "the disk is full" in explained.problem
        assert explained.__cause__ is error


def test_other_errors_pass_as_they_are(tmp_path):
    for error in (OSError(errno.EACCES, "Permission denied"), RuntimeError("shapes")):
        assert raised(error, tmp_path) is error


def test_a_diverging_loss_keeps_the_last_good_checkpoint(tmp_path, tokenizer, monkeypatch):
    """NaN weights after step 9 give a NaN loss in step 10."""
    original = Record.add

    def add(self, pending):
        if pending.step >= 10:
            pending = pending._replace(loss=pending.loss * np.nan)
        original(self, pending)

    monkeypatch.setattr(Record, "add", add)
    unfinished = tmp_path / "unfinished"
    with pytest.raises(TrainingDiverged) as caught:
        train_run(tmp_path / "out", unfinished, tokenizer, dropout=False)
    text = str(caught.value)
    assert text.startswith("the loss of step 10 is nan")
    assert "its windows: " in text
    assert text.endswith(f"The last good checkpoint is kept: {unfinished / 'checkpoint-6'}")
    assert caught.value.step == 10
    assert [path.name for path in unfinished.glob("checkpoint-*")] == ["checkpoint-6"]
    assert not (tmp_path / "out" / "model.safetensors").exists()
