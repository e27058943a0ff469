"""SIGTERM is handled, never swallowed, and reported by the exit code of the command."""

import os
import signal

import pytest
import torch

from tests.command_line import invoke
from train.processes.environment import collective_device, sum_over_processes
from train.processes.preemption import Preempted, StopRequest, handle_sigterm


def test_the_command_line_ends_with_143(monkeypatch):
    def run_experiment(*_: object, **__: object) -> None:
        raise Preempted("ended by SIGTERM after step 3 of 5")

    monkeypatch.setattr("spikein.api.run.run", run_experiment)
    result = invoke("run", "configs/quickstart.yaml", code=143)
    assert "ended by SIGTERM after step 3 of 5" in result.output


def test_an_unhandled_signal_still_ends_the_process():
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with handle_sigterm() as request:
            os.kill(os.getpid(), signal.SIGTERM)
            assert request.received
            assert heard == []
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_processes_agree_on_stopping_and_saving_in_one_sum(monkeypatch):
    """Only the other process has received SIGTERM or reached the time of a checkpoint."""
    sent: list[list[float]] = []
    other = [0.0, 0.0]

    def summed(values: list[float]) -> list[float]:
        sent.append(values)
        return [own + remote for own, remote in zip(values, other, strict=True)]

    monkeypatch.setattr("train.processes.environment.sum_over_processes", summed)
    request = StopRequest()
    assert (request.share(due=False), request.shared) == (False, False)
    assert (request.share(due=True), request.shared) == (True, False)
    other[:] = [0.0, 1.0]
    assert (request.share(due=False), request.shared) == (True, False)
    other[:] = [1.0, 0.0]
    assert (request.share(due=False), request.shared) == (False, True)
    assert sent == [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_collectives_use_the_device_of_the_backend(monkeypatch):
    # NCCL refuses a tensor of the CPU ("No backend type associated with device type cpu").
    monkeypatch.setattr(torch.distributed, "get_backend", lambda: "nccl")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    assert collective_device() == torch.device("cuda", 3)
    monkeypatch.setattr(torch.distributed, "get_backend", lambda: "gloo")
    assert collective_device() == torch.device("cpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_nccl_sums_over_processes(tmp_path, monkeypatch):
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
    try:
        # A group of one that counts as several; otherwise no sum would be computed.
        monkeypatch.setenv("WORLD_SIZE", "2")
        assert sum_over_processes([1.0, 2.5]) == [1.0, 2.5]
    finally:
        torch.distributed.destroy_process_group()
