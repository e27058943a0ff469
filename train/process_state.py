"""State of the process that training changes and restores: randomness, transformers, memory.

Transformers seeds Python's, NumPy's and torch's generators, shows progress bars and imports an
installed DeepSpeed. Memory: each step frees and reallocates the same large blocks (mainly the
logits). The GNU C library immediately returns blocks of over 32 MiB to the kernel, which must zero
them again in the next step: a fifth of the step of a 1 M model. Inside `reused_memory` the process
keeps them; without the GNU C library, nothing happens.
"""

import ctypes
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import accelerate.utils.other
import numpy as np
import torch
from transformers.utils import logging

from inject.keyed import item_key


@contextmanager
def plain_transformers(*, deepspeed: bool = False) -> Iterator[None]:
    """Hide progress bars, and keep Accelerate from importing an installed DeepSpeed.

    Args:
        deepspeed: whether it may be imported, because the settings require it.

    Accelerate imports it only to test whether it wraps a model: three seconds, a
    warning on the standard output, and a failure if its CUDA toolkit is missing.
    """
    bars_enabled = logging.is_progress_bar_enabled()
    available = accelerate.utils.other.is_deepspeed_available
    logging.disable_progress_bar()
    if not deepspeed:
        accelerate.utils.other.is_deepspeed_available = lambda: False
    try:
        yield
    finally:
        accelerate.utils.other.is_deepspeed_available = available
        if bars_enabled:
            logging.enable_progress_bar()


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
    """Return the seed for dropout and similar draws in a run: 32 bits, as NumPy requires."""
    return item_key(f"training/{seed}") & 0xFFFF_FFFF


# Parameters of mallopt(3), from malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_MMAP_MAX = -4

_MIB = 1 << 20


@contextmanager
def reused_memory() -> Iterator[None]:
    """Keep freed blocks in the process, and release them all on leaving."""
    library = _gnu_library()
    if library is None:
        yield
        return
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, 1024 * _MIB)
    try:
        yield
    finally:
        # The value that the library's own adjustment reaches after blocks of that size.
        library.mallopt(_MMAP_MAX, 65536)
        library.mallopt(_MMAP_THRESHOLD, 32 * _MIB)
        library.mallopt(_TRIM_THRESHOLD, 64 * _MIB)
        library.malloc_trim(0)


def _gnu_library() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
