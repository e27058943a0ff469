"""One of several processes that train or unlearn: `python -m train.worker JOB.json [STAGE]`.

Started by `train.launch`, or by `torchrun`. Reads its job, trains (of unlearning: the named stage,
or the method's own), and writes its progress to its standard output (only rank 0). Several nodes
use the same command; on each of them, with a shared folder:

    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \\
        -m train.worker JOB.json

where JOB.json is the one that a run leaves in its `.unfinished` folder.

The process ends with the code of its work, without the interpreter's end: threads of torch's
process group outlive it, and then the interpreter's end sometimes aborts the process (SIGABRT,
"terminate called without an active exception"), so that a run whose models are all written would
count as failed. Nothing remains to do then: writers close their files, and trackers end their runs
(`train.loop.trackers`).
"""

import atexit
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from inject.errors import SpikeinError
from inject.helper_processes import die_with_parent
from train.job import NOTICE, Job, TrainingJob, progress_line, run
from train.processes.hang_detection import PARENT


def run_worker() -> None:
    """Run the job in the file of the first argument, with further arguments."""
    parent = os.environ.get(PARENT)
    die_with_parent(None if parent is None else int(parent))
    job, run = read_job(Path(sys.argv[1]).read_text(encoding="utf-8"))
    run(
        job,
        *sys.argv[2:],
        progress=lambda progress: print(progress_line(progress), flush=True),
        notice=lambda text: print(f"{NOTICE}{text}", flush=True),
    )


def read_job(text: str) -> tuple[Job, Callable[..., None]]:
    """Return the job in a file, and the function that runs it."""
    if "method" not in json.loads(text):
        return TrainingJob.model_validate_json(text), run
    from train.unlearn.stages import run_stage
    from train.unlearn.unlearning_job import UnlearningJob

    return UnlearningJob.model_validate_json(text), run_stage


def run_and_exit(work: Callable[[], object]) -> NoReturn:
    """Do the work and end this process with 0, an error's own code, or 1 after a traceback."""
    code = 0
    try:
        work()
    except SpikeinError as error:
        print(error, file=sys.stderr)
        code = error.exit_code
    except Exception:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run_and_exit(run_worker)
