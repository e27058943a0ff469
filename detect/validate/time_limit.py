"""A time limit for code of others in this process.

On the main thread a timer's signal interrupts Python code wherever it is, so a detector that never
ends is named with its line; what runs inside a library written in C is interrupted when it returns.
On another thread, or a system without such timers, nothing is interrupted, and the time is measured
alone.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from inject.errors import InputError


# Not an `Exception`: a detector that catches those would catch the limit, too.
class TookTooLong(BaseException):
    """The time is over."""


class TooSlow(InputError):
    """A detector takes longer than the limit."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TookTooLong` in the code inside once it has run for so long.

    A timer that runs already goes on afterwards, as if nothing had been.
    """
    on_main = threading.current_thread() is threading.main_thread()
    if not on_main or not hasattr(signal, "setitimer"):
        yield
        return

    def on_alarm(signum: int, frame: FrameType | None) -> None:
        raise TookTooLong(f"it ran for more than {seconds:.3g} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    started = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            rest = max(1e-3, left - (time.monotonic() - started))
            signal.setitimer(signal.ITIMER_REAL, rest, interval)
