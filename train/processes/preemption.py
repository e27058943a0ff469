"""A run that SIGTERM asks to end (pre-emption, the end of a job's time) ends with a checkpoint.

The step in hand is finished, a checkpoint for a restart is written, and the run ends with exit code
143. Of several processes all stop after the same step, whichever of them received it: they sum two
numbers over the network once a step. The other says whether a checkpoint is due: clocks differ, and
all must save after the same step. SIGTERM is handled while steps are made and ends the process at
once before and after, when there is nothing to save; a second one changes nothing (`torchrun` and
SLURM both send it to each process), SIGKILL does.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar

from inject.errors import SpikeinError


class Preempted(SpikeinError):
    """The run was asked to end, and did, with a checkpoint."""

    exit_code: ClassVar[int] = 128 + signal.SIGTERM


class StopRequest:
    """Whether the run was asked to end."""

    def __init__(self) -> None:
        self.received = False
        """Whether this process received SIGTERM."""
        self.shared = False
        """Whether all processes know of it, and stop after this step."""

    def share(self, *, due: bool) -> bool:
        """Let all processes know of SIGTERM; each must call this once a step.

        Args:
            due: whether a checkpoint is due by this process's clock.

        Returns:
            Whether a checkpoint is due by the clock of any.
        """
        # The process that starts others receives signals, too, and has no need of torch.
        from train.processes.environment import sum_over_processes

        received, due_in = sum_over_processes([float(self.received), float(due)])
        self.shared = received > 0
        return due_in > 0


@contextmanager
def handle_sigterm(*, wanted: bool = True) -> Iterator[StopRequest]:
    """Yield a request that SIGTERM sets; one that nobody acted on ends the process after all.

    Args:
        wanted: False leaves SIGTERM as it is.
    """
    request = StopRequest()
    # Python handles signals in its main thread alone.
    if not wanted or threading.current_thread() is not threading.main_thread():
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
