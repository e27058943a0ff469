"""Functions of the tests' steps, which any process finds by name, and steps that name them.

The module imports nothing heavy, as all that it imports is part of the steps' identity. Values that
must not identify a step (how long it sleeps, where it writes its trace) are its execution.
"""

import errno
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from inject.errors import InputError
from inject.step import Step, StepContext

ERRORS = {
    "RuntimeError": RuntimeError("boom"),
    "InputError": InputError("bad row", where="f:3"),
    "OSError": OSError(errno.ENOSPC, "No space left on device"),
}


def step(label: str, function: str, *, kind: str = "thing", **more: Any) -> Step:
    """A step by the name of one of the functions below; other steps among `more` are its inputs."""
    inputs = {name: more.pop(name) for name in list(more) if isinstance(more[name], Step)}
    inputs |= more.pop("inputs", {})
    settings = {"label": label, **more.pop("settings", {})}
    return Step(
        kind=kind, label=label, function=f"{__name__}:{function}", settings=settings,
        inputs=inputs, **more,
    )  # fmt: skip


def trace(context: StepContext, event: str) -> None:
    """Write down what a step does, when, and with how many threads."""
    if context.execution.get("trace"):
        line = {"step": context.settings["label"], "what": event, "time": time.time()}
        line |= {"process": os.getpid(), "threads": os.environ.get("OMP_NUM_THREADS")}
        line["cores"] = sorted(os.sched_getaffinity(0))
        with Path(context.execution["trace"]).open("a") as file:
            file.write(json.dumps(line) + "\n")


def read_inputs(context: StepContext) -> list[str]:
    return [(context.inputs[name] / "value").read_text() for name in sorted(context.inputs)]


def nothing(context: StepContext) -> None:
    """Writes no file."""


def write(context: StepContext) -> None:
    """Writes its label, or the text of its execution, and its inputs."""
    trace(context, "began")
    context.report(1, 2, unit="things", note="n")
    text = context.execution.get("text", context.settings["label"])
    (context.out / "value").write_text(f"({text}{''.join(read_inputs(context))})")


def write_time(context: StepContext) -> None:
    (context.out / "value").write_text(str(time.time_ns()))


def join(context: StepContext) -> None:
    (context.out / "value").write_text(" ".join(read_inputs(context)))


def write_first_letter(context: StepContext) -> None:
    (context.out / "value").write_text(read_inputs(context)[0][:2] * 3)


def first_letter(folder: Path) -> str:
    """A facet of the file that `write` writes: the letter after its bracket."""
    return (folder / "value").read_text()[1]


def sleep(context: StepContext) -> None:
    """Sleeps, and counts itself and its inputs."""
    trace(context, "began")
    time.sleep(context.execution["seconds"])
    (context.out / "value").write_text(str(sum(map(int, read_inputs(context))) + 1))
    trace(context, "ended")


def fail(context: StepContext) -> None:
    trace(context, "began")
    print("a line of the log before it fails")
    raise ValueError("this step never works")


def fail_by_name(context: StepContext) -> None:
    raise ERRORS[context.settings["error"]]


def be_killed(context: StepContext) -> None:
    """Kills its process so many times, each of which leaves a mark."""
    trace(context, "began")
    marks = Path(context.execution["marks"])
    marks.mkdir(exist_ok=True)
    number = len(list(marks.iterdir()))
    if number < context.execution["times"]:
        (marks / str(number)).touch()
        print("about to be killed", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    (context.out / "value").write_text("1")


def be_stopped_halfway(context: StepContext) -> None:
    """Sends its process a signal between two files, if its execution names one."""
    trace(context, "began")
    label = context.settings["label"]
    (context.out / "half").write_text(label)
    if context.execution["signal"]:
        os.kill(os.getpid(), signal.Signals[context.execution["signal"]])
    (context.out / "whole").write_text(label * 100)


def spoil_input(context: StepContext) -> None:
    """Copies its input, and flips a byte of that afterwards."""
    from tests.spikein.store.damage import flip

    (context.out / "value").write_text(read_inputs(context)[0])
    flip(context.inputs["x"] / "value")


def count_threads(context: StepContext) -> None:
    import torch

    (context.out / "value").write_text(str(torch.get_num_threads()))


def run_plugin(context: StepContext) -> None:
    """Loads a plug-in again, which must be the one that the step was named by."""
    from inject.plugins import PluginKind, file_reference, load_file, require_same_source

    reference = file_reference(context.execution["plugin"])
    assert reference is not None
    expected = PluginKind(
        noun="thing", accepts=lambda value: isinstance(value, type), allowed="any"
    )
    plugin = load_file(reference, expected)
    require_same_source(plugin.digest, context.settings["plugin"], label=plugin.origin)
    (context.out / "value").write_text(str(plugin.value().number()))


def sleep_on_first_node(context: StepContext) -> None:
    """Writes down its node of a Ray cluster, and sleeps on its first attempt."""
    import ray

    folder = Path(context.execution["nodes"])
    folder.mkdir(exist_ok=True)
    attempt = len(list(folder.iterdir()))
    (folder / str(attempt)).write_text(ray.get_runtime_context().get_node_id())
    trace(context, "began")
    if attempt == 0:
        time.sleep(context.execution["seconds"])
    (context.out / "value").write_text("1")
    trace(context, "ended")


def train(context: StepContext) -> None:
    """Counts to sixty in six seconds; on SIGTERM it leaves a checkpoint, from which it resumes."""
    from train.processes.preemption import Preempted, handle_sigterm

    trace(context, "began")
    checkpoint = context.unfinished / "step"
    done = int(checkpoint.read_text()) if checkpoint.exists() else 0
    with handle_sigterm() as request:
        while done < 60:
            time.sleep(0.1)
            done += 1
            if request.received:
                checkpoint.parent.mkdir(parents=True, exist_ok=True)
                checkpoint.write_text(str(done))
                raise Preempted("ended by SIGTERM with a checkpoint")
    (context.out / "value").write_text(str(int(checkpoint.read_text())))
