"""A helper process that ends with the process that started it, however that one ends.

A process that is killed with SIGKILL cannot end its children. On Linux the kernel does
(`PR_SET_PDEATHSIG`); everywhere a thread looks once a second whether the parent is still there.
Windows gives an orphan no new parent, so there the thread sees nothing.
"""

import ctypes
import os
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 1.0


def usable_cores() -> tuple[int, ...]:
    """Return the numbers of the cores that this process may use, which a container can restrict."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def die_with_parent(parent: int | None = None) -> None:
    """End this process as soon as its parent is gone.

    Args:
        parent: the parent's id, from the parent itself: reveals a parent that ended before this
            call; None takes the present one.
    """
    expected = os.getppid() if parent is None else parent
    if sys.platform == "linux":
        # A kernel or a sandbox that refuses leaves the thread below.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def watch() -> None:
        while os.getppid() == expected:
            time.sleep(_POLL_SECONDS)
        os._exit(1)

    if os.getppid() != expected:
        os._exit(1)
    threading.Thread(target=watch, name="parent watch", daemon=True).start()
