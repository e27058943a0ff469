"""One process of several that train together: what the tests of the engines start.

`python -m tests.train.engines OUT UNFINISHED TOKENIZER RUNS-JSON BATCH-WINDOWS [HOW AT]`
trains the run of `killable` once for each execution among the runs, the second into `OUT-1`, and
so on; a run may also be the file of an unlearning job. Torch and DeepSpeed take longer to start
than to train. At that many tokens rank 1 is killed (`KILL`) or stopped (`STOP`) by a signal, or
never gets its next window (`fetch`). With `CLOCK` in place of `KILL` rank 1 is killed, too, and
checkpoints go by time: the clock of rank 0 stands, that of rank 1 makes 100 s a step.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from accelerate.state import AcceleratorState
from transformers.integrations.deepspeed import unset_hf_deepspeed_config

from tests.train.killable import go
from train.execution import ExecutionSettings
from train.launch import launch
from train.loop import trainer
from train.loop.dataset import WindowSequence
from train.loop.record import Record
from train.processes.environment import rank
from train.unlearn.stages import run_stage
from train.unlearn.unlearning_job import UnlearningJob
from train.worker import run_and_exit


def start(
    out: Path,
    unfinished: Path,
    tokenizer: Path,
    runs: list[dict | str],
    *more: object,
    **launching,
) -> None:
    """Start two processes of this module and wait for both."""
    arguments = (out, unfinished, tokenizer, json.dumps(runs), *more)
    launch(
        "tests.train.engines",
        [str(value) for value in arguments],
        processes=2,
        environment={"OMP_NUM_THREADS": "1"},
        **launching,
    )


def forget_engine() -> None:
    """Forget the engine of the run before, which Accelerate and transformers keep.

    DeepSpeed is kept from compiling sums of its own for CPUs, a minute's work.
    """
    AcceleratorState._reset_state()
    unset_hf_deepspeed_config()
    if "deepspeed" in sys.argv[4]:
        import deepspeed

        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False


def main() -> None:
    """Train; rank 1 is killed, stopped or held up where the arguments say so."""
    out, unfinished, tokenizer = map(Path, sys.argv[1:4])
    how, at = (sys.argv[6], int(sys.argv[7])) if len(sys.argv) > 6 else ("", 0)
    reached = False
    clock = [0.0]
    if how == "CLOCK":
        trainer.time = SimpleNamespace(monotonic=lambda: clock[0])
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
        for number, work in enumerate(json.loads(sys.argv[4])):
            forget_engine()
            if isinstance(work, str):
                run_stage(UnlearningJob.model_validate_json(Path(work).read_text("utf-8")))
                continue
            suffix = f"-{number}" if number else ""
            go(
                out.with_name(out.name + suffix),
                unfinished.with_name(unfinished.name + suffix),
                tokenizer,
                dropout=False,
                batch_windows=int(sys.argv[5]),
                execution=ExecutionSettings(resume_every=None if how == "CLOCK" else 3, **work),
                progress=lambda moment: print(moment.tokens, rank(), flush=True),
            )


if __name__ == "__main__":
    # As a training process ends: the interpreter's end aborts one now and then.
    run_and_exit(main)
