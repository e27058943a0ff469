"""One process of several that train together: what the tests of the engines start.

`python -m tests.train.engines OUT UNFINISHED TOKENIZER EXECUTION-JSON BATCH-WINDOWS [HOW AT]`
trains the run of `killable`; at that many tokens rank 1 is killed (`KILL`) or stopped (`STOP`) by
a signal, or never gets its next window (`fetch`). With `CLOCK` in place of `KILL` rank 1 is killed,
too, and checkpoints go by time: the clock of rank 0 stands, that of rank 1 makes 100 s a step.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import torch

from tests.train.killable import go
from train.execution import ExecutionSettings
from train.loop import resume
from train.loop.dataset import WindowSequence
from train.loop.record import Record
from train.processes.environment import rank
from train.worker import run_and_exit


def main() -> None:
    """Train; rank 1 is killed, stopped or held up where the arguments say so."""
    torch.set_num_threads(1)
    how, at = (sys.argv[6], int(sys.argv[7])) if len(sys.argv) > 6 else ("", 0)
    reached = False
    clock = [0.0]
    if how == "CLOCK":
        resume.time = SimpleNamespace(monotonic=lambda: clock[0])
    original, fetch = Record.read, WindowSequence.__getitem__

    def read(self: Record) -> None:
        nonlocal reached
        original(self)
        reached = rank() == 1 and bool(self.rows) and self.rows[-1].tokens >= at
        if reached and how in ("KILL", "STOP", "CLOCK"):
            os.kill(os.getpid(), signal.Signals[f"SIG{how.replace('CLOCK', 'KILL')}"])
        if rank() == 1:
            clock[0] = 100.0 * len(self.rows)

    def getitem(self: WindowSequence, position: int) -> object:
        if reached and how == "fetch":
            time.sleep(3600)
        return fetch(self, position)

    with patch.object(Record, "read", read), patch.object(WindowSequence, "__getitem__", getitem):
        go(
            Path(sys.argv[1]),
            Path(sys.argv[2]),
            Path(sys.argv[3]),
            dropout=False,
            batch_windows=int(sys.argv[5]),
            execution=ExecutionSettings(
                resume_every=None if how == "CLOCK" else 3, **json.loads(sys.argv[4])
            ),
            progress=lambda moment: print(moment.tokens, rank(), flush=True),
        )


if __name__ == "__main__":
    # As a training process ends: the interpreter's end aborts one now and then.
    run_and_exit(main)
