"""Small graphs whose steps sleep, fail, or are killed, and a runner of them as a process.

`python -m tests.spikein.executors.graphs EXECUTOR STORE NAME` runs one and prints how it ended.
"""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inject.step import Step
from spikein.config.executor_settings import LocalSettings
from spikein.executors import Executor, executor_of, get_executor
from spikein.executors.protocol import RunReport
from spikein.pipeline.graph import Graph
from spikein.progress import Lines
from spikein.store.store import Store
from tests.spikein.step_functions import step


def place(path: Path | None) -> str | None:
    return None if path is None else str(path)


def sleeping(label: str, seconds: float, trace: Path | None = None, **inputs: Step) -> Step:
    """A step that sleeps and writes down when it began and ended."""
    execution = {"seconds": seconds, "trace": place(trace)}
    return step(label, "sleep", execution=execution, **inputs)


def failing(label: str, trace: Path | None = None, **inputs: Step) -> Step:
    """A step that prints and raises."""
    return step(label, "fail", execution={"trace": place(trace)}, **inputs)


def killed_until(label: str, marks: Path, times: int) -> Step:
    """A step whose process is killed with signal 9 a number of times."""
    return step(label, "be_killed", execution={"marks": place(marks), "times": times})


def fan(cells: int, seconds: float, trace: Path | None = None) -> Graph:
    """One shared step, several that need it, and one that needs all of those."""
    shared = sleeping("shared", seconds, trace)
    middle = {
        f"cell{number}": sleeping(f"cell{number}", seconds, trace, shared=shared)
        for number in range(cells)
    }
    return Graph(goals=(sleeping("end", 0.0, trace, **middle),), name="fan")


def slow(folder: Path, seconds: float = 60.0) -> Graph:
    """A shared step and a cell that take no time, and three cells of a minute.

    With other seconds it has the same steps: a run that was stopped is finished at once.
    """
    trace = folder / "trace"
    shared = sleeping("shared", 0.0, trace)
    middle = {
        f"cell{number}": sleeping(f"cell{number}", seconds if number else 0.0, trace, shared=shared)
        for number in range(4)
    }
    return Graph(goals=(sleeping("end", 0.0, trace, **middle),), name="slow")


def one_fails(trace: Path | None = None) -> Graph:
    """Three cells, of which one fails; one more step needs the one that fails."""
    shared = sleeping("shared", 0.0, trace)
    bad = failing("bad", trace, shared=shared)
    good = [sleeping(name, 0.3, trace, shared=shared) for name in ("good1", "good2")]
    return Graph(goals=(sleeping("after", 0.0, trace, bad=bad), *good), name="one-fails")


def events(trace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []


def wait_for(condition: Callable[[], Any], seconds: float = 120.0) -> None:
    """Wait until a condition is true; the limit allows for a busy machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition never became true"
        time.sleep(0.05)


def value(report: RunReport, goal: Step) -> int:
    return int((report.artifact(goal).path / "value").read_text())


def executor(name: str) -> Executor:
    return executor_of(LocalSettings(workers=2)) if name == "local" else get_executor(name)


GRAPHS: dict[str, Callable[[Path], Graph]] = {
    "fan": lambda folder: fan(4, 0.5, folder / "trace"),
    "slow": slow,
    "one-fails": lambda folder: one_fails(folder / "trace"),
}

if __name__ == "__main__":
    # A shell's background jobs ignore Ctrl-C, and so do their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    which, store, graph = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    done = executor(which).run(
        GRAPHS[graph](store.parent), Store(store), Lines(sys.stderr, verbose=True)
    )
    print(json.dumps({"built": done.built, "steps": len(done.outcomes)}))
