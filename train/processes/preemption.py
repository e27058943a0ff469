"""On SIGTERM (pre-emption, the end of a job's time), a run ends with a restart checkpoint.

The current step is finished, a restart checkpoint is written, and the run ends with exit code 143.
All of several processes stop after the same step, regardless of which one received it: they sum two
numbers over the network once per step. The second one reports whether a checkpoint is due: clocks
differ, and all must save after the same step. SIGTERM is handled during the steps and ends the
process immediately before and after them, when there is nothing to save; a second one changes
nothing (`torchrun` and SLURM both send it to each process), SIGKILL does.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar

from inject.errors import SpikeinError


class Preempted(SpikeinError):
    """The run ended on request, with a restart checkpoint."""

    exit_code: ClassVar[int] = 128 + signal.SIGTERM


class StopRequest:
    """A request to end the run."""

    def __init__(self) -> None:
        self.received = False
        """Whether this process received SIGTERM."""
        self.shared = False
        """Whether all processes know of it and stop after this step."""

    def share(self, *, due: bool) -> bool:
        """Share SIGTERM with all processes; each must call this once per step.

        Args:
            due: whether a restart checkpoint is due by this process's clock.

        Returns:
            Whether a restart checkpoint is due by any process's clock.
        """
        # The process that starts others also receives signals, and does not need torch.
        from train.processes.environment import sum_over_processes

        received, due_in = sum_over_processes([float(self.received), float(due)])
        self.shared = received > 0
        return due_in > 0


@contextmanager
def handle_sigterm(*, enabled: bool = True) -> Iterator[StopRequest]:
    """Yield a request that SIGTERM sets; an unhandled one ends the process at the end.

    Args:
        enabled: False does not change the handling of SIGTERM.
    """
    request = StopRequest()
    # Python handles signals only in its main thread.
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield request
        return

    def receive(_number: int, _frame: FrameType | None) -> None:
        request.received = True

    before = signal.signal(signal.SIGTERM, receive)
    try:
        yield request
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
    if request.received:
        signal.raise_signal(signal.SIGTERM)
