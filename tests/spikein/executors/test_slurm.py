"""The executor `slurm` on a cluster of this one machine: arrays, cancelled, timed out, requeued.

Skipped, with a loud message, if Debian's packages slurm-wlm and munge are not installed.
"""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from inject.errors import InputError
from spikein.config.executor_settings import SlurmSettings, StepRequest
from spikein.executors import RunReport, StepsFailed, run_graph
from spikein.executors.live_status import read_statuses
from spikein.executors.pools import slurm as slurm_module
from spikein.executors.pools.slurm import Slurm, job_parameters
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Store
from tests.spikein.executors.graphs import (
    events,
    one_fails,
    sleeping,
    slow,
    value,
    wait_for,
)
from tests.spikein.executors.slurm_cluster import slurm_cluster
from tests.spikein.step_functions import step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("submitit", reason="SLURM IS NOT TESTED: pip install submitit")
    with (
        pytest.MonkeyPatch.context() as patch,
        slurm_cluster(tmp_path_factory.mktemp("slurm")),
    ):
        # One small cluster of our own may be polled more often.
        patch.setattr(slurm_module, "LOOK_SECONDS", 0.5)
        yield


def slurm(**settings) -> Slurm:
    return Slurm(SlurmSettings.model_validate({"partition": "main", "time": "0:10", **settings}))


class InBackground:
    """A run of a graph in a thread, so that the test can meddle with its jobs."""

    def __init__(self, executor: Slurm, graph: Graph, store: Path) -> None:
        self.report: RunReport | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(executor, graph, store))
        self._thread.start()

    def _run(self, executor: Slurm, graph: Graph, store: Path) -> None:
        try:
            self.report = run_graph(executor, graph, Store(store), Progress())
        except BaseException as error:
            self.error = error

    def join(self) -> None:
        self._thread.join(200)
        assert not self._thread.is_alive()


def jobs() -> list[str]:
    done = subprocess.run(
        ["squeue", "--noheader", "--array", "--format=%i %T"], capture_output=True, text=True
    )
    return [line.split()[0] for line in done.stdout.splitlines()]


def state(job: str) -> str:
    done = subprocess.run(
        ["squeue", "--noheader", "--states=all", "--format=%T", "--jobs", job],
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def began(folder: Path, name: str) -> int:
    trace_events = events(folder / "trace")
    return sum(event["step"] == name and event["what"] == "began" for event in trace_events)


def ended(folder: Path, name: str) -> bool:
    return bool(list((folder / "store/thing").glob(f"{name}-*")))


def test_a_job_starts_as_many_threads_as_it_has_cpus():
    setup = job_parameters(slurm(setup=["module load x"]).settings, StepRequest(cpus=3))["setup"]
    assert setup[0] == "module load x"
    assert {"export OMP_NUM_THREADS=3", "export MKL_NUM_THREADS=3"} < {*setup}
    assert all(line.startswith("export ") for line in setup[1:])


def test_steps_ready_together_form_one_array_and_a_failed_job_does_not_stop_others(
    cluster, tmp_path
):
    run = InBackground(slurm(), one_fails(tmp_path / "trace"), tmp_path / "store")
    seen: set[str] = set()

    def finished() -> bool:
        for status in read_statuses(tmp_path / "store"):
            seen.update(entry.where for entry in status.steps if entry.where)
        return run.error is not None

    wait_for(finished, 120)
    assert isinstance(run.error, StepsFailed)
    [failure] = run.error.failures
    assert failure.problem == "ValueError: this step never works"
    assert "a line of the log before it fails" in failure.lines
    for name in ("shared", "bad", "good1", "good2"):
        assert began(tmp_path, name) == 1, "every step once"
        assert ended(tmp_path, name) == (name != "bad")
    assert any("_2, process" in location for location in seen), seen


def test_a_cancelled_job_fails_its_step_and_the_others_are_finished(cluster, tmp_path):
    long = sleeping("long", 120.0, tmp_path / "trace")
    run = InBackground(slurm(), Graph(goals=(long, sleeping("short", 0.2))), tmp_path / "store")

    def job() -> list[str]:
        steps = [entry for status in read_statuses(tmp_path / "store") for entry in status.steps]
        [location] = [entry.where for entry in steps if entry.name == "thing long"] or [""]
        return (location or "").split()[2:3]

    # The step can begin before the run reports its place.
    wait_for(lambda: began(tmp_path, "long") and job())
    subprocess.run(["scancel", job()[0].rstrip(",")], check=True)
    run.join()
    assert isinstance(run.error, StepsFailed)
    [failure] = run.error.failures
    assert failure.name == "thing long"
    assert "was cancelled" in failure.problem
    assert began(tmp_path, "long") == 1, "a cancelled job is not restarted"
    assert [path.name[:5] for path in (tmp_path / "store/thing").glob("[!.]*")] == ["short"]


def test_a_job_that_exceeds_its_time_fails_with_a_message(cluster, tmp_path):
    # Slurm measures in minutes; with so early a warning the test takes seconds.
    executor = slurm(time="0:01", warning_seconds=58, attempts=1)
    graph = Graph(goals=(sleeping("long", 300.0, tmp_path / "trace"), sleeping("short", 0.2)))
    with pytest.raises(StepsFailed) as raised:
        run_graph(executor, graph, Store(tmp_path / "store"), Progress())
    [failure] = raised.value.failures
    assert "came to the end of its time (attempt 1 of 1)" in failure.problem
    assert "executor.time" in failure.problem
    assert not list((tmp_path / "store").glob("*/.*.tmp"))


def test_a_warned_step_writes_a_checkpoint_and_resumes_in_the_requeued_job(cluster, tmp_path):
    execution = {"trace": str(tmp_path / "trace")}
    graph = Graph(goals=(step("train", "train", execution=execution),))
    run = InBackground(slurm(attempts=1), graph, tmp_path / "store")
    wait_for(lambda: began(tmp_path, "train"))
    time.sleep(1.0)
    [job] = jobs()
    subprocess.run(["scancel", "--signal=USR2", job], check=True)

    wait_for(lambda: state(job) == "PENDING")
    # Slurm lets a requeued job wait for two minutes; no other job needs this machine. In the
    # first second the machine still refuses the job, which it has just ended.
    time.sleep(3.0)
    subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], check=True)
    wait_for(lambda: began(tmp_path, "train") == 2)
    run.join()
    assert run.error is None
    assert run.report is not None
    assert 1 <= value(run.report, graph.goals[0]) < 60, "it resumed from the checkpoint"


def test_ctrl_c_cancels_the_jobs_and_the_next_run_resumes(cluster, tmp_path, start):
    process = start("slurm", "slow")
    wait_for(lambda: began(tmp_path, "cell1") and ended(tmp_path, "cell0"))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert process.returncode != 0
    wait_for(lambda: not jobs(), 30)
    assert read_statuses(tmp_path / "store")[0].state == "interrupted"
    report = run_graph(slurm(), slow(tmp_path, 0.0), Store(tmp_path / "store"), Progress())
    assert report.built == 4, "shared and cell0 were finished before"


def test_impossible_requests_are_refused_by_slurm(cluster, tmp_path):
    with pytest.raises(InputError, match="Slurm refuses the job of thing a"):
        run_graph(
            slurm(partition="none-such"),
            Graph(goals=(sleeping("a", 0.0),)),
            Store(tmp_path / "store"),
            Progress(),
        )
    with pytest.raises(InputError, match="Did you mean 'thing'"):
        run_graph(
            slurm(steps={"thin": {"cpus": 2}}),
            Graph(goals=(sleeping("a", 0.0),)),
            Store(tmp_path / "store"),
            Progress(),
        )


def test_a_folder_that_others_can_write_is_named_before_jobs_load_from_it(tmp_path):
    inner = tmp_path / "shared" / "store" / ".runs" / "run"
    inner.mkdir(parents=True)
    shared = tmp_path / "shared"
    for path in (shared, shared / "store", shared / "store/.runs"):
        path.chmod(0o755)
    assert slurm_module.writable_by_others(inner) is None
    shared.chmod(0o775)
    assert slurm_module.writable_by_others(inner) == shared
    shared.chmod(0o1777)
    assert slurm_module.writable_by_others(inner) is None, "others cannot rename our folder"
    os.chown(shared, 12345, -1)
    assert slurm_module.writable_by_others(inner) == shared
