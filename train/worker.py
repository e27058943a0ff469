"""One of several training processes: `python -m train.worker JOB.json`.

Started by `train.launch`, or by `torchrun`. Reads its job, trains, and writes to its standard
output how far it is (rank 0 alone). Several nodes take the same path; on each of them, with a
folder that all of them see:

    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \\
        -m train.worker JOB.json

where JOB.json is the one that a run leaves in its `.unfinished` folder.
"""

import os
import sys
from pathlib import Path

from inject.helper_processes import die_with_parent
from train.job import NOTICE, TrainingJob, progress_line, run
from train.processes.hang_detection import PARENT
from train.processes.leaving import run_and_exit


def main() -> None:
    """Run the job named by the first argument."""
    parent = os.environ.get(PARENT)
    die_with_parent(None if parent is None else int(parent))
    job = TrainingJob.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    run(
        job,
        progress=lambda progress: print(progress_line(progress), flush=True),
        notice=lambda text: print(f"{NOTICE}{text}", flush=True),
    )


if __name__ == "__main__":
    run_and_exit(main)
