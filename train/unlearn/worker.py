"""One of several processes that unlearn together, started by `train.launch`.

`python -m train.unlearn.worker JOB.json [STAGE]` runs the named stage, or the method's own.
"""

from train.unlearn.stages import run_stage
from train.unlearn.unlearning_job import UnlearningJob
from train.worker import run_worker

if __name__ == "__main__":
    run_worker(run_stage, UnlearningJob)
