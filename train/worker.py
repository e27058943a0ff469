"""One of several training processes: `python -m train.worker JOB.json`.

Started by `train.job`, or by `torchrun`. Reads its job, trains, and says on its standard output
how far it is (rank 0 alone). Several nodes take the same path; on each of them, with a folder that
all of them see:

    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \\
        -m train.worker JOB.json

where JOB.json is the one that a run leaves in its `.unfinished` folder.
"""

import sys
from pathlib import Path

from inject.errors import SpikeinError
from train.job import TrainingJob, moment_line, run

BAD_INPUT = 2


def main() -> None:
    """Run the job named by the first argument."""
    job = TrainingJob.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))

    try:
        run(job, progress=lambda moment: print(moment_line(moment), flush=True))
    except SpikeinError as error:
        print(error, file=sys.stderr)
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
