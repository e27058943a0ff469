"""Small graphs whose steps sleep, fail, or are killed, and a runner of them as a process.

`python -m tests.spikein.executors.graphs EXECUTOR STORE NAME` runs one and prints how it ended.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spikein.config.executor_settings import LocalSettings, RaySettings, SlurmSettings
from spikein.executors import Executor, InProcess
from spikein.executors.protocol import RunReport
from spikein.pipeline.graph import Graph, Step, StepContext
from spikein.progress import Lines
from spikein.store.store import Store

Build = Callable[[StepContext], None]


def step(label: str, build: Build, **inputs: Step) -> Step:
    return Step(kind="thing", label=label, settings={"label": label}, inputs=inputs, build=build)


def told(trace: Path | None, label: str, what: str) -> None:
    """Write down what a step does, when, and with how many threads."""
    if trace is not None:
        line = {"step": label, "what": what, "time": time.time(), "process": os.getpid()}
        line["threads"] = os.environ.get("OMP_NUM_THREADS")
        line["cores"] = sorted(os.sched_getaffinity(0))
        with trace.open("a") as file:
            file.write(json.dumps(line) + "\n")


def sleeping(label: str, seconds: float, trace: Path | None = None, **inputs: Step) -> Step:
    """A step that sleeps and writes down when it began and ended."""

    def build(context: StepContext) -> None:
        told(trace, label, "began")
        time.sleep(seconds)
        total = sum(int((one.path / "value").read_text()) for one in context.inputs.values())
        (context.out / "value").write_text(str(total + 1))
        told(trace, label, "ended")

    return step(label, build, **inputs)


def failing(label: str, trace: Path | None = None, **inputs: Step) -> Step:
    """A step that prints and raises."""

    def build(context: StepContext) -> None:
        told(trace, label, "began")
        print("a line of the log before it fails")
        raise ValueError("this step never works")

    return step(label, build, **inputs)


def killed_until(label: str, marks: Path, times: int, trace: Path | None = None) -> Step:
    """A step whose process is killed with signal 9 so many times."""

    def build(context: StepContext) -> None:
        told(trace, label, "began")
        marks.mkdir(exist_ok=True)
        number = len(list(marks.iterdir()))
        if number < times:
            (marks / str(number)).touch()
            print("about to be killed", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        (context.out / "value").write_text("1")

    return step(label, build)


def fan(cells: int, seconds: float, trace: Path | None = None) -> Graph:
    """One shared step, so many that need it, and one that needs all of them."""
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
    """Wait until something holds; other tests may keep this machine busy meanwhile."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)


def value(report: RunReport, goal: Step) -> int:
    return int((report.artifact(goal).path / "value").read_text())


def executor(name: str) -> Executor:
    from spikein.executors.pools.local import Local

    made: dict[str, Callable[[], Executor]] = {
        "in-process": InProcess,
        "local": lambda: Local(LocalSettings(workers=2)),
    }
    if name == "ray":
        from spikein.executors.pools.ray_cluster import Ray

        return Ray(RaySettings())
    if name == "slurm":
        from spikein.executors.pools.slurm import Slurm

        return Slurm(SlurmSettings())
    return made[name]()


GRAPHS: dict[str, Callable[[Path], Graph]] = {
    "fan": lambda folder: fan(4, 0.5, folder / "trace"),
    "slow": slow,
    "one-fails": lambda folder: one_fails(folder / "trace"),
}

if __name__ == "__main__":
    which, store, graph = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    done = executor(which).run(GRAPHS[graph](store.parent), Store(store), Lines(sys.stderr))
    print(json.dumps({"built": done.built, "steps": len(done.outcomes)}))
