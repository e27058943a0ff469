from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from train.loop.dataset import FedWindow
from train.loop.record import READ_EVERY, PendingPass, Record, TrainingDiverged


class OnGpu:
    """A loss that pretends to be on a GPU and counts how often it is read."""

    device = torch.device("cuda")
    waits = 0

    def __init__(self, value: float) -> None:
        self._value = value

    def item(self) -> float:
        OnGpu.waits += 1
        return self._value


class FakeLedger(SimpleNamespace):
    rows: list[dict[str, Any]]

    def record(self, fed: Any, ids: Any) -> None:
        self.rows.append({**fed._asdict(), "ids": ids})

    def recorded(self) -> Any:
        return self.rows

    def restore(self, exposures: Any) -> None:
        self.rows = list(exposures)


def step(number: int, loss: float) -> PendingPass:
    fed = [FedWindow(0, 100 + number, number - 1)]
    return PendingPass(number, 1e-3, fed, torch.full((1, 4), number), OnGpu(loss))


def test_gpu_losses_are_read_in_blocks_without_losing_steps() -> None:
    OnGpu.waits = 0
    ledger = FakeLedger(rows=[])
    record = Record(ledger, context=4, windows=READ_EVERY + 3, progress=None)
    record.start()
    for number in range(1, READ_EVERY + 4):
        record.add(step(number, float(number)))
        assert OnGpu.waits == (0 if number < READ_EVERY else READ_EVERY)
    record.read()
    numbers = list(range(1, READ_EVERY + 4))
    assert [row.step for row in record.rows] == numbers
    assert [row.loss for row in record.rows] == numbers
    assert [row["window"] for row in ledger.rows] == [100 + number for number in numbers]
    assert [row["tokens_before"] for row in ledger.rows] == [4 * (n - 1) for n in numbers]
    assert all(np.array_equal(row["ids"], [row["step"]] * 4) for row in ledger.rows)
    assert record.rows[-1].tokens == 4 * len(numbers)


def test_the_first_bad_step_of_a_block_is_named() -> None:
    record = Record(FakeLedger(rows=[]), context=4, windows=9, progress=None)
    record.start()
    for number, loss in enumerate([3.0, float("inf"), float("nan")], start=1):
        record.add(step(number, loss))
    with pytest.raises(TrainingDiverged, match=r"step 2 is inf.*102 \(epoch 0\)"):
        record.read()
