"""Keeping the random state of the process out of training, and training out of it.

Transformers seeds Python's, NumPy's and torch's global generators; inside
`isolated_randomness` it may, and afterwards all of them are as they were.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from inject.keyed import item_key


@contextmanager
def isolated_randomness() -> Iterator[None]:
    """Restore the global random states of Python, NumPy, torch and its GPUs on leaving."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


def trainer_seed(seed: int) -> int:
    """Return the seed that dropout and the like see in a run: 32 bits, as NumPy wants them."""
    return item_key(f"training/{seed}") & 0xFFFF_FFFF
