"""This process's rank among those that train together, by the environment that `torchrun` sets.

For a single process, every function here does nothing and costs nothing.
"""

import os
from collections.abc import Sequence

import torch
import torch.distributed


def world_size() -> int:
    """Return the number of processes that train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Return this process's rank, from 0."""
    return int(os.environ.get("RANK", "0"))


def local_rank() -> int:
    """Return this process's rank on this machine, from 0."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def several_nodes() -> bool:
    """Return whether some of the processes run on other machines."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", world_size())) < world_size()


def sum_over_processes(values: Sequence[float]) -> list[float]:
    """Return the sums of values over all processes; each must pass the same number of values."""
    if world_size() == 1:
        return list(values)
    total = torch.tensor(values, dtype=torch.float64, device=collective_device())
    torch.distributed.all_reduce(total)
    return total.tolist()


def collective_device() -> torch.device:
    """Return the device of tensors that the processes sum: NCCL supports only GPUs."""
    if torch.distributed.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def barrier() -> None:
    """Wait until every process has called this function."""
    if world_size() > 1:
        torch.distributed.barrier()
