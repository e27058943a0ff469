"""One of several processes that train together, started by the tests of the engines.

`python -m tests.train.engines OUT UNFINISHED TOKENIZER RUNS-JSON BATCH-WINDOWS [HOW AT]`
trains the run of `killable` once per execution in the runs, the second into `OUT-1` and so on; a
run may also be the file of an unlearning job. One process has several runs because Torch and
DeepSpeed take longer to start than to train. After `AT` tokens rank 1 is killed (`KILL`) or stopped
(`STOP`) by a signal, or waits forever for its next window (`fetch`). `CLOCK` also kills rank 1, and
checkpoints depend on time: the clock of rank 0 is constant, that of rank 1 adds 100 s per step.
"""

import gc
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

from tests.train.killable import train_run
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
    """Forget the engine of the previous run, which Accelerate and transformers keep.

    This also prevents DeepSpeed from compiling its sums for CPUs, which takes a minute, and sets
    what has been imported aside for the collector of garbage.
    """
    AcceleratorState._reset_state()
    unset_hf_deepspeed_config()
    if "deepspeed" in sys.argv[4]:
        import deepspeed

        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    # Each run collects all garbage: without the libraries, that takes 1 ms instead of 0.3 s.
    gc.freeze()


def main() -> None:
    """Train; kill, stop or delay rank 1 if the arguments require it."""
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
            train_run(
                out.with_name(out.name + suffix),
                unfinished.with_name(unfinished.name + suffix),
                tokenizer,
                dropout=False,
                batch_windows=int(sys.argv[5]),
                execution=ExecutionSettings(resume_every=None if how == "CLOCK" else 3, **work),
                progress=lambda moment: print(moment.tokens, rank(), flush=True),
            )


if __name__ == "__main__":
    # End like a training process, because interpreter shutdown sometimes aborts.
    run_and_exit(main)
