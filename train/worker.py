"""One of several training processes: `python -m train.worker JOB.json`.

Started by `train.launch`, or by `torchrun`. Reads its job, trains, and writes to its standard
output how far it is (rank 0 alone). Several nodes take the same path; on each of them, with a
folder that all of them see:

    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \\
        -m train.worker JOB.json

where JOB.json is the one that a run leaves in its `.unfinished` folder.

The process ends with the code of its work, without the interpreter's end: threads of torch's
process group outlive it, and the interpreter's end under them now and then aborts the process
(SIGABRT, "terminate called without an active exception"), so that a run whose models are all
written would count as failed. Nothing is left to do then: files are closed by those who wrote them,
and trackers end their runs (`train.loop.trackers`).
"""

import atexit
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from inject.errors import SpikeinError
from inject.helper_processes import die_with_parent
from inject.settings import Settings
from train.job import NOTICE, TrainingJob, progress_line, run
from train.processes.hang_detection import PARENT


def run_worker(run: Callable[..., object], kind: type[Settings]) -> NoReturn:
    """Run the job whose file the first argument names, then end this process.

    Args:
        run: takes the job, the further arguments, `progress` and `notice`.
        kind: of the job.
    """

    def work() -> None:
        parent = os.environ.get(PARENT)
        die_with_parent(None if parent is None else int(parent))
        job = kind.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
        run(
            job,
            *sys.argv[2:],
            progress=lambda progress: print(progress_line(progress), flush=True),
            notice=lambda text: print(f"{NOTICE}{text}", flush=True),
        )

    run_and_exit(work)


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
    run_worker(run, TrainingJob)
