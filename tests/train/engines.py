"""One process of several that train together: what the tests of the engines start.

`python -m tests.train.engines OUT UNFINISHED TOKENIZER EXECUTION-JSON BATCH-WINDOWS [HOW AT]`
trains the run of `killable`; at that many tokens rank 1 is killed (`KILL`) or stopped (`STOP`) by
a signal, or never gets its next window (`fetch`).
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from unittest.mock import patch

import torch

from inject.errors import SpikeinError
from tests.train.killable import go
from train.execution import ExecutionSettings
from train.loop.dataset import WindowSequence
from train.loop.record import Record
from train.processes.environment import rank

if __name__ == "__main__":
    torch.set_num_threads(1)
    how, at = (sys.argv[6], int(sys.argv[7])) if len(sys.argv) > 6 else ("", 0)
    reached = False
    original, fetch = Record.read, WindowSequence.__getitem__

    def read(self: Record) -> None:
        global reached
        original(self)
        reached = rank() == 1 and bool(self.rows) and self.rows[-1].tokens >= at
        if reached and how in ("KILL", "STOP"):
            os.kill(os.getpid(), signal.Signals[f"SIG{how}"])

    def getitem(self: WindowSequence, position: int) -> object:
        if reached and how == "fetch":
            time.sleep(3600)
        return fetch(self, position)

    with patch.object(Record, "read", read), patch.object(WindowSequence, "__getitem__", getitem):
        try:
            go(
                Path(sys.argv[1]),
                Path(sys.argv[2]),
                Path(sys.argv[3]),
                dropout=False,
                batch_windows=int(sys.argv[5]),
                execution=ExecutionSettings(**json.loads(sys.argv[4])),
                progress=lambda moment: print(moment.tokens, rank(), flush=True),
            )
        except SpikeinError as error:
            print(error, file=sys.stderr)
            sys.exit(error.exit_code)
