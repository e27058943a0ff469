"""Overhead of running a study, without its steps: `python -m scripts.bench.study`.

A graph of one shared step, 200 cells that do nothing, and one that needs all of them, is run from
nothing and again when all of it is stored. The growth of this process's memory between a graph of
100 and one of 200 cells is also measured, and the processor's time of the former: on a busy machine
the other seconds are waiting. Then four cells that sleep are run by one worker and by
two: what is lost to 2 is the cost of the workers. Sleeping cells need no core, so that the
number measures only the scheduling. Then the intervals of a study of 100 cells and 25 detectors
are computed (`study_intervals.py`). The last line is one JSON object.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

from inject.step import Step, StepContext
from scripts.bench.study_intervals import measure_intervals
from spikein.config.executor_settings import LocalSettings
from spikein.executors import Executor, InProcess, run_graph
from spikein.executors.pools.local import Local
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.filesystem import delete_tree
from spikein.store.store import Store

CELLS = 200
SLEEPERS = 4


def measure(*, cells: int = CELLS, sleep: float = 10.0) -> dict[str, float]:
    """Return the seconds of a graph of cells, and the speed-up of two workers over one.

    Args:
        cells: number in the graph of empty steps.
        sleep: seconds that each of four cells sleeps.
    """
    with tempfile.TemporaryDirectory(prefix="spikein-bench-") as name:
        root = Path(name)
        try:
            half = _run(InProcess(), _graph(cells // 2, 0.0), root / "half")
            before = _memory()
            processor = time.process_time()
            fresh = _run(InProcess(), _graph(cells, 0.0), root / "whole")
            processor = time.process_time() - processor
            grown = _memory() - before
            stored = _run(InProcess(), _graph(cells, 0.0), root / "whole")
            by_workers = _run(_local(2), _graph(cells, 0.0), root / "workers")
            by_workers_again = _run(_local(2), _graph(cells, 0.0), root / "workers")
            one_worker = _run(_local(1), _graph(SLEEPERS, sleep, ends=False), root / "one")
            two = _run(_local(2), _graph(SLEEPERS, sleep, ends=False), root / "two")
        finally:
            delete_tree(root)
    return {
        "graph_seconds": fresh,
        "graph_processor_seconds": processor,
        "graph_cached_seconds": stored,
        "half_graph_seconds": half,
        "graph_two_workers_seconds": by_workers,
        "graph_two_workers_cached_seconds": by_workers_again,
        "graph_memory_growth_mb": grown,
        "two_worker_speedup": one_worker / two,
        "one_worker_seconds": one_worker,
        "two_worker_seconds": two,
        "cores": float(len(os.sched_getaffinity(0))),
    }


def _local(workers: int) -> Executor:
    return Local(LocalSettings(workers=workers))


def _graph(cells: int, seconds: float, *, ends: bool = True) -> Graph:
    shared = _step("shared", 0.0)
    middle = {
        f"cell{at:03d}": _step(f"cell{at:03d}", seconds, shared=shared) for at in range(cells)
    }
    goals = (_step("end", 0.0, **middle),) if ends else tuple(middle.values())
    return Graph(goals=goals, name="bench")


def _step(label: str, seconds: float, **inputs: Step) -> Step:
    return Step(
        kind="cell",
        label=label,
        # Started by `-m` this module has another name, by which no worker finds it.
        function="scripts.bench.study:build_cell",
        settings={"label": label},
        inputs=inputs,
        execution={"seconds": seconds},
    )


def build_cell(context: StepContext) -> None:
    """Sleep, and write the label."""
    if context.execution["seconds"]:
        time.sleep(context.execution["seconds"])
    (context.out / "value").write_text(context.settings["label"])


def _run(executor: Executor, graph: Graph, store: Path) -> float:
    started = time.perf_counter()
    run_graph(executor, graph, Store(store), Progress())
    return time.perf_counter() - started


def _memory() -> float:
    """Return this process's peak memory so far in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the figures; the last line is JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--sleep", type=float, default=10.0, help="seconds a cell sleeps")
    parser.add_argument("--studied", type=int, default=100, help="cells that get intervals")
    options = parser.parse_args()
    figures = measure(cells=options.cells, sleep=options.sleep)
    figures |= measure_intervals(cells=options.studied)
    for name, number in figures.items():
        print(f"{name:>34} {number:10.3f}")
    print(json.dumps({name: round(number, 4) for name, number in figures.items()}))


if __name__ == "__main__":
    main()
