"""The executor `local` on real processes: side by side, killed, interrupted, failing, read-only."""

import io
import os
import signal
import subprocess
import threading
from itertools import combinations
from pathlib import Path

import pytest

from inject.errors import InputError
from spikein.config.executor_settings import LocalSettings
from spikein.executors import InProcess, StepsFailed, run_graph
from spikein.executors.live_status import MARK, RUNS_FOLDER, read_statuses
from spikein.executors.pools.local import Local, Share, worker_shares
from spikein.pipeline.graph import Graph
from spikein.progress import Lines, Progress
from spikein.store.filesystem import delete_tree
from spikein.store.store import Store
from tests.spikein.executors.graphs import (
    events,
    fan,
    killed_until,
    one_fails,
    sleeping,
    slow,
    value,
    wait_for,
)
from tests.spikein.mounts import read_only
from tests.spikein.samples import Notices
from tests.spikein.step_functions import step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def local(**settings) -> Local:
    return Local(LocalSettings.model_validate({"workers": 2, **settings}))


def running_processes(folder: Path) -> set[int]:
    """The workers that have begun a step and still exist."""
    return {
        event["process"]
        for event in events(folder / "trace")
        if Path(f"/proc/{event['process']}").exists()
    }


def step_names(folder: Path, kind: str = "began") -> list[str]:
    """Return the names of steps that began, or ended."""
    return [event["step"] for event in events(folder / "trace") if event["what"] == kind]


def labels(store: Path) -> set[str]:
    return {path.name.rpartition("-")[0] for path in store.glob("thing/[!.]*")}


def test_independent_steps_run_in_parallel_once_each_with_a_share_of_the_machine(tmp_path):
    store, stream = Store(tmp_path / "store"), io.StringIO()
    [end] = fan(4, 0.5, tmp_path / "trace").goals
    graph = Graph(goals=(end, step("threads", "count_threads", end=end)))
    report = run_graph(local(), graph, store, Lines(stream, verbose=True))
    cores = max(len(os.sched_getaffinity(0)) // 2, 1)
    assert report.built == 7
    assert [value(report, goal) for goal in graph.goals] == [4 * 2 + 1, cores]
    times = {(event["step"], event["what"]): event["time"] for event in events(tmp_path / "trace")}
    assert len(times) == len(events(tmp_path / "trace")) == 12, "every step once"
    cells = [f"cell{number}" for number in range(4)]
    assert min(times[cell, "began"] for cell in cells) > times["shared", "ended"]
    assert times["end", "began"] > max(times[cell, "ended"] for cell in cells)
    overlaps = [
        min(times[first, "ended"], times[second, "ended"])
        - max(times[first, "began"], times[second, "began"])
        for first, second in combinations(cells, 2)
    ]
    assert max(overlaps) > 0.1, "two cells ran at the same time"
    for event in events(tmp_path / "trace"):
        assert (len(event["cores"]), event["threads"]) == (cores, str(cores))
    # Each step is logged with its own number.
    numbers: dict[str, set[str]] = {}
    for line in stream.getvalue().splitlines():
        place, _, message = line.partition("] ")
        numbers.setdefault(message.split(":")[0].removesuffix(" …"), set()).add(place)
    assert all(len(places) == 1 for places in numbers.values()), numbers
    [folder] = (tmp_path / "store" / RUNS_FOLDER).iterdir()
    assert folder.stat().st_mode & 0o077 == 0, "only its user may enter the folder of a run"
    assert run_graph(local(), graph, store, Progress()).built == 0
    assert len(events(tmp_path / "trace")) == 12


@pytest.mark.parametrize(
    ("workers", "cores", "gpus", "shares"),
    [
        (3, 8, 0, [((0, 1, 2), ()), ((3, 4), ()), ((5, 6, 7), ())]),
        (None, 16, 0, 4),
        (None, 2, 0, [((0,), ()), ((1,), ())]),
        (None, 8, 2, [((0, 1, 2, 3), ("0",)), ((4, 5, 6, 7), ("1",))]),
        (2, 4, 4, [((0, 1), ("0", "1")), ((2, 3), ("2", "3"))]),
        (2, 4, 1, [((0, 1), ("0",)), ((2, 3), ("0",))]),
    ],
)
def test_cores_and_gpus_are_divided_among_workers(workers, cores, gpus, shares):
    allocated = worker_shares(workers, range(cores), [str(number) for number in range(gpus)])
    if isinstance(shares, int):
        assert len(allocated) == shares
        assert sorted(core for share in allocated for core in share.cores) == list(range(cores))
    else:
        assert allocated == tuple(Share(*share) for share in shares)


def test_a_failed_cell_does_not_stop_others_and_is_named_with_its_last_lines(tmp_path):
    with pytest.raises(StepsFailed) as raised:
        run_graph(local(), one_fails(), Store(tmp_path / "store"), Progress())
    [failure] = raised.value.failures
    assert failure.name == "thing bad"
    assert failure.problem == "ValueError: this step never works"
    assert any("a line of the log before it fails" in line for line in failure.lines)
    assert not any(line.startswith(MARK) for line in failure.lines)
    assert raised.value.not_begun == ("thing after",)
    assert raised.value.exit_code == 3
    message = str(raised.value)
    for words in ("1 step failed; 3 finished", "thing bad: ValueError", "thing after", failure.log):
        assert words in message
    assert "A report needs every arm" in message
    assert labels(tmp_path / "store") == {"shared", "good1", "good2"}


def test_a_step_is_retried_when_its_worker_is_killed_and_fails_after_the_last_attempt(tmp_path):
    goals = (
        killed_until("victim", tmp_path / "marks", 2),
        killed_until("doomed", tmp_path / "others", 99),
        sleeping("other", 0.2),
    )
    log = Notices()
    with pytest.raises(StepsFailed, match=r"killed by SIGKILL.*last of 3 attempts") as raised:
        run_graph(local(), Graph(goals=goals), Store(tmp_path / "store"), log)
    [failure] = raised.value.failures
    assert (failure.name, failure.lines[-1]) == ("thing doomed", "about to be killed")
    for name in ("victim", "doomed"):
        lost = [text for text in log.notices if f"{name}: worker" in text and "retried" in text]
        assert [f"attempt {number} of 3" in text for number, text in enumerate(lost, 1)] == [
            True, True,
        ]  # fmt: skip
    assert labels(tmp_path / "store") == {"victim", "other"}
    left = [path.name[1:13] for path in (tmp_path / "store").glob("*/.*.tmp")]
    assert left == [goals[1].digest[:12]], "half-written until another builds it"


def test_worker_killed_while_starting_is_replaced(tmp_path, monkeypatch):
    workers = []

    class SecondIsKilled(subprocess.Popen):
        def __init__(self, command, **settings):
            super().__init__(command, **settings)
            workers.append(self)
            if len(workers) == 2:
                self.kill()

    monkeypatch.setattr(subprocess, "Popen", SecondIsKilled)
    report = run_graph(local(), fan(2, 0.5), Store(tmp_path / "store"), Progress())
    assert (report.built, len(workers)) == (4, 3)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_ended_run_ends_its_workers_and_resumes_when_restarted(tmp_path, start, number):
    process = start("local", "slow")
    # With cells 1 and 2 on both workers, cell 0 is finished.
    wait_for(lambda: {*step_names(tmp_path)} >= {"cell1", "cell2"})
    process.send_signal(number)
    _, log = process.communicate(timeout=60)
    assert process.returncode != 0
    if number != signal.SIGKILL:
        assert "KeyboardInterrupt" in log or "ended by SIGTERM" in log
    wait_for(lambda: not running_processes(tmp_path), 30)
    [status] = read_statuses(tmp_path / "store")
    assert status.state == "interrupted"
    assert not [entry for entry in status.steps if entry.state == "running"]
    assert {*step_names(tmp_path, "ended")} == {"shared", "cell0"}
    graph = slow(tmp_path, 0.0)
    report = run_graph(local(), graph, Store(tmp_path / "store"), Progress())
    assert (report.built, value(report, graph.goals[0])) == (4, 9)
    ended = step_names(tmp_path, "ended")
    assert sorted(ended) == sorted({*ended}), "finished steps are not built again"


def test_two_runners_on_one_store_build_every_step_once(tmp_path, start):
    runners = [start("local", "fan") for _ in range(2)]
    for runner in runners:
        _, log = runner.communicate(timeout=120)
        assert runner.returncode == 0, log
    assert sorted(step_names(tmp_path, "ended")) == [
        "cell0",
        "cell1",
        "cell2",
        "cell3",
        "end",
        "shared",
    ]


def test_a_read_only_store_is_refused_unless_it_is_complete(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    message = "cannot be written, and there are steps to build"
    with read_only(store), pytest.raises(InputError, match=message):
        run_graph(local(), fan(2, 0.0), Store(store), Progress())
    run_graph(local(), fan(2, 0.0), Store(store), Progress())
    with read_only(store):
        assert run_graph(local(), fan(2, 0.0), Store(store), Progress()).built == 0


def test_a_disk_that_becomes_read_only_fails_the_affected_steps(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    first, last = sleeping("first", 0.0, tmp_path / "trace"), step("last", "nothing")
    graph = Graph(goals=(sleeping("second", 2.0, tmp_path / "trace", first=first), last))
    raised: list[BaseException] = []

    def run() -> None:
        try:
            run_graph(local(), graph, Store(store), Progress())
        except BaseException as error:
            raised.append(error)

    runner = threading.Thread(target=run)
    runner.start()
    wait_for(lambda: any(event["step"] == "second" for event in events(tmp_path / "trace")))
    with read_only(store):
        runner.join(60)
    [error] = raised
    assert isinstance(error, StepsFailed)
    assert "thing second" in str(error)
    assert "Read-only file system" in str(error) or "cannot be written" in str(error)


@pytest.mark.parametrize("executor", [InProcess(), local()], ids=["in-process", "local"])
def test_a_stored_step_with_changed_inputs_builds_inputs_that_seemed_unneeded(tmp_path, executor):
    store = Store(tmp_path / "store")
    first, deep = step("first", "write_time"), sleeping("deep", 0.0)
    second = sleeping("second", 0.0, deep=deep)
    both = step("both", "join", first=first, second=second)
    alone = step("alone", "join", first=first)
    graph = Graph(goals=(both, alone))
    assert run_graph(InProcess(), graph, store, Progress()).built == 5
    for name in ("first", "second", "deep", "alone"):
        [folder] = (tmp_path / "store/thing").glob(f"{name}-*")
        delete_tree(folder)
    # `both` is stored, so that `second` and `deep` need not be built; then the content of `first`
    # changes.
    report = run_graph(executor, graph, Store(tmp_path / "store"), Progress())
    assert report.built == 5
    values = [(report.artifact(goal).path / "value").read_text() for goal in (first, second, both)]
    assert values[2] == f"{values[0]} {values[1]}"
    [status, *_] = read_statuses(tmp_path / "store")
    assert (status.state, {entry.state for entry in status.steps}) == ("finished", {"done"})


def test_a_stored_step_needs_no_inputs(tmp_path):
    graph = fan(2, 0.0)
    run_graph(InProcess(), graph, Store(tmp_path / "store"), Progress())
    [folder] = (tmp_path / "store/thing").glob("shared-*")
    delete_tree(folder)
    for executor in (InProcess(), local()):
        assert run_graph(executor, graph, Store(tmp_path / "store"), Progress()).built == 0
    assert not folder.exists()
