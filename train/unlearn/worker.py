"""One of several processes that unlearn together.

`python -m train.unlearn.worker JOB.json [STAGE]`, started by `train.launch`, reads its job, runs
the named stage (or the method's own), and writes to its standard output how far it is, as
`train.worker` does.
"""

import os
import sys
from pathlib import Path

from inject.helper_processes import die_with_parent
from train.job import NOTICE, progress_line
from train.processes.hang_detection import PARENT
from train.processes.leaving import run_and_exit
from train.unlearn.stages import run_stage
from train.unlearn.unlearning_job import UnlearningJob


def main() -> None:
    """Run the job named by the first argument."""
    parent = os.environ.get(PARENT)
    die_with_parent(None if parent is None else int(parent))
    job = UnlearningJob.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    stage = sys.argv[2] if len(sys.argv) > 2 else None
    run_stage(
        job,
        stage,
        progress=lambda progress: print(progress_line(progress), flush=True),
        notice=lambda text: print(f"{NOTICE}{text}", flush=True),
    )


if __name__ == "__main__":
    run_and_exit(main)
