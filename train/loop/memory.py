"""Keeping freed memory for the next step while training on a CPU.

Each step frees and asks again for the same large blocks (the logits above all). The GNU C
library gives blocks of over 32 MiB back to the kernel at once, which must fill them with zeros
anew in the next step: a fifth of the step of a 1 M model. Inside `reused_memory` they stay with
the process. Numbers do not change; where there is no GNU C library, nothing happens.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Parameters of mallopt(3), from malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_MMAP_MAX = -4

_MIB = 1 << 20


@contextmanager
def reused_memory() -> Iterator[None]:
    """Let freed blocks stay with the process, and give them all back on leaving."""
    library = _gnu_library()
    if library is None:
        yield
        return
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, 1024 * _MIB)
    try:
        yield
    finally:
        # Where the library's own adjustment ends up once it has met blocks of that size.
        library.mallopt(_MMAP_MAX, 65536)
        library.mallopt(_MMAP_THRESHOLD, 32 * _MIB)
        library.mallopt(_TRIM_THRESHOLD, 64 * _MIB)
        library.malloc_trim(0)


def _gnu_library() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
