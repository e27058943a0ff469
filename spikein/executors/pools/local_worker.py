"""One worker process of this machine, started as `python -m … PARENT CORES`.

It reads one order per line, builds the step, and answers with one line, until the end of its input.
It ends with its parent, however that ends.
"""

import gc
import os
import sys


def main(parent: int, cores: set[int]) -> None:
    """Build the ordered steps.

    Args:
        parent: the process that sends the orders.
        cores: the cores that this process and those it starts may use.
    """
    gc.set_threshold(700, 10, 100)  # as in `spikein.cli.main`
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    from inject.helper_processes import die_with_parent

    die_with_parent(parent)
    # A step's output must not be read as an answer.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    import json
    from dataclasses import asdict

    from spikein.executors.graph_file import GraphFile
    from spikein.executors.task import Task, run_task

    for line in sys.stdin.buffer:
        order = json.loads(line)
        values = {**order["task"], "graph": GraphFile(*order["task"]["graph"])}
        end = run_task(Task(**values), order["where"])
        answers.write(json.dumps(asdict(end)).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), {int(core) for core in sys.argv[2].split(",")})
