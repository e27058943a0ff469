"""One process of several that train together: what the tests of the engines start.

`python -m tests.train.engines OUT UNFINISHED TOKENIZER EXECUTION-JSON BATCH-WINDOWS [DIES-AT]`
trains the run of `killable`; rank 1 kills itself at that many tokens.
"""

import json
import os
import signal
import sys
from pathlib import Path
from unittest.mock import patch

import torch

from tests.train.killable import go
from train.execution import ExecutionSettings
from train.processes import rank
from train.record import Record

if __name__ == "__main__":
    torch.set_num_threads(1)
    dies_at = int(sys.argv[6]) if len(sys.argv) > 6 else None

    def dies(done: int) -> None:
        if rank() == 1 and dies_at is not None and done >= dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    original = Record.read

    def read(self: Record) -> None:
        original(self)
        dies(self.rows[-1].tokens if self.rows else 0)

    with patch.object(Record, "read", read):
        go(
            Path(sys.argv[1]),
            Path(sys.argv[2]),
            Path(sys.argv[3]),
            dropout=False,
            batch_windows=int(sys.argv[5]),
            execution=ExecutionSettings(**json.loads(sys.argv[4])),
            progress=lambda moment: print(moment.tokens, rank(), flush=True),
        )
