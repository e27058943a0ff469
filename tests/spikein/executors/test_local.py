"""The executor `local` on real processes: side by side, killed, interrupted, failing, read-only."""

import os
import signal
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from inject.errors import InputError
from spikein.config.executor_settings import LocalSettings
from spikein.executors import InProcess, StepsFailed, run_graph
from spikein.executors.live_status import RUNS_FOLDER, read_statuses
from spikein.executors.pools.local import Local, Share, worker_shares
from spikein.executors.task_files import MARK
from spikein.pipeline.graph import Graph
from spikein.progress import Lines, Progress
from spikein.store.artifact import open_artifact
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
from tests.spikein.step_functions import step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def local(**settings) -> Local:
    return Local(LocalSettings.model_validate({"workers": 2, **settings}))


def running_processes(folder: Path) -> set[int]:
    """The workers that have begun a step, and still are there."""
    return {
        one["process"]
        for one in events(folder / "trace")
        if Path(f"/proc/{one['process']}").exists()
    }


def begun(folder: Path) -> set[str]:
    """The steps that were begun."""
    return {one["step"] for one in events(folder / "trace")}


def contents(store: Path) -> dict[str, str]:
    found = [open_artifact(path).manifest for path in store.glob("thing/[!.]*")]
    return {one.digest: one.content for one in found}


def test_independent_steps_run_side_by_side_and_shared_ones_once(tmp_path):
    graph = fan(4, 0.5, tmp_path / "trace")
    report = run_graph(local(), graph, Store(tmp_path / "store"), Progress())
    assert (report.built, value(report, graph.goals[0])) == (6, 4 * 2 + 1)
    began = {one["step"]: one for one in events(tmp_path / "trace") if one["what"] == "began"}
    ended = {one["step"]: one for one in events(tmp_path / "trace") if one["what"] == "ended"}
    assert len(events(tmp_path / "trace")) == 12, "every step once"
    cells = [f"cell{number}" for number in range(4)]
    assert all(began[cell]["time"] > ended["shared"]["time"] for cell in cells)
    assert began["end"]["time"] > max(ended[cell]["time"] for cell in cells)
    overlaps = [
        min(ended[one]["time"], ended[other]["time"])
        - max(began[one]["time"], began[other]["time"])
        for one in cells
        for other in cells
        if one < other
    ]
    assert max(overlaps) > 0.1, "two cells ran at the same time"
    again = run_graph(local(), graph, Store(tmp_path / "store"), Progress())
    assert again.built == 0
    assert len(events(tmp_path / "trace")) == 12


def test_a_worker_has_its_share_of_cores_and_as_many_threads(tmp_path):
    run_graph(local(), fan(4, 0.3, tmp_path / "trace"), Store(tmp_path / "store"), Progress())
    cores = len(os.sched_getaffinity(0))
    share = max(cores // 2, 1)
    for one in events(tmp_path / "trace"):
        assert len(one["cores"]) == share
        assert one["threads"] == str(share)


def test_torch_starts_as_many_threads_as_the_share_has_cores(tmp_path):
    graph = Graph(goals=(step("threads", "count_threads"),))
    report = run_graph(local(), graph, Store(tmp_path / "store"), Progress())
    assert value(report, graph.goals[0]) == max(len(os.sched_getaffinity(0)) // 2, 1)


@pytest.mark.parametrize(
    ("workers", "cores", "gpus", "shares"),
    [
        (2, 8, 0, [((0, 1, 2, 3), ()), ((4, 5, 6, 7), ())]),
        (3, 8, 0, [((0, 1, 2), ()), ((3, 4), ()), ((5, 6, 7), ())]),
        (None, 16, 0, 4),
        (None, 2, 0, [((0,), ()), ((1,), ())]),
        (None, 1, 0, [((0,), ()), ((0,), ())]),
        (None, 8, 2, [((0, 1, 2, 3), ("0",)), ((4, 5, 6, 7), ("1",))]),
        (2, 4, 4, [((0, 1), ("0", "1")), ((2, 3), ("2", "3"))]),
        (2, 4, 1, [((0, 1), ("0",)), ((2, 3), ("0",))]),
    ],
)
def test_cores_and_gpus_are_shared_out(workers, cores, gpus, shares):
    found = worker_shares(workers, range(cores), [str(number) for number in range(gpus)])
    if isinstance(shares, int):
        assert len(found) == shares
        assert sorted(core for share in found for core in share.cores) == list(range(cores))
    else:
        assert found == tuple(Share(*share) for share in shares)


def test_the_artifacts_are_those_of_the_plain_executor(tmp_path):
    graph = fan(3, 0.0)
    run_graph(local(), graph, Store(tmp_path / "one"), Progress())
    run_graph(InProcess(), graph, Store(tmp_path / "other"), Progress())
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def test_a_failed_cell_takes_no_other_down_and_is_named_with_its_last_lines(tmp_path):
    with pytest.raises(StepsFailed) as raised:
        run_graph(local(), one_fails(), Store(tmp_path / "store"), Progress())
    [failure] = raised.value.failures
    assert failure.name == "thing bad"
    assert failure.problem == "ValueError: this step never works"
    assert any("a line of the log before it fails" in line for line in failure.lines)
    assert not any(line.startswith(MARK) for line in failure.lines)
    assert raised.value.not_begun == ("thing after",)
    assert raised.value.exit_code == 3
    said = str(raised.value)
    for words in ("1 step failed; 3 finished", "thing bad: ValueError", "thing after", failure.log):
        assert words in said
    names = {path.name.rpartition("-")[0] for path in (tmp_path / "store/thing").glob("[!.]*")}
    assert names == {"shared", "good1", "good2"}


def test_a_worker_killed_in_mid_step_is_replaced_and_the_step_begun_again(tmp_path):
    graph = Graph(goals=(killed_until("victim", tmp_path / "marks", 2), sleeping("other", 0.2)))
    said: list[str] = []

    class Heard(Progress):
        def notice(self, text: str) -> None:
            said.append(text)

    report = run_graph(local(), graph, Store(tmp_path / "store"), Heard())
    assert report.built == 2
    lost = [text for text in said if "killed by SIGKILL" in text]
    assert [f"attempt {number} of 3" in text for number, text in enumerate(lost, 1)] == [True] * 2
    assert not list((tmp_path / "store").glob("*/.*.tmp")), "no half-written artifact is left"


def test_a_step_that_is_killed_each_time_fails_and_the_others_are_finished(tmp_path):
    victim = killed_until("victim", tmp_path / "marks", 99)
    graph = Graph(goals=(victim, sleeping("other", 0.2)))
    with pytest.raises(StepsFailed, match=r"killed by SIGKILL.*last of 2 attempts") as raised:
        run_graph(local(attempts=2), graph, Store(tmp_path / "store"), Progress())
    assert raised.value.failures[0].lines[-1] == "about to be killed"
    assert len(list((tmp_path / "marks").iterdir())) == 2
    assert [path.name[:5] for path in (tmp_path / "store/thing").glob("[!.]*")] == ["other"]


def test_the_driver_killed_takes_its_workers_along_and_goes_on_when_started_again(tmp_path, start):
    process = start("local", "slow")
    # With cells 1 and 2 on both workers, cell 0 is finished.
    wait_for(lambda: begun(tmp_path) >= {"cell1", "cell2"})
    process.kill()
    process.communicate()
    wait_for(lambda: not running_processes(tmp_path), 30)
    [status] = read_statuses(tmp_path / "store")
    assert status.state == "interrupted"
    assert not [one for one in status.steps if one.state == "running"]
    before = {one["step"] for one in events(tmp_path / "trace") if one["what"] == "ended"}
    assert before == {"shared", "cell0"}
    graph = slow(tmp_path, 0.0)
    report = run_graph(local(), graph, Store(tmp_path / "store"), Progress())
    assert value(report, graph.goals[0]) == 9
    ended = [one["step"] for one in events(tmp_path / "trace") if one["what"] == "ended"]
    assert sorted(ended) == sorted(set(ended)), "what was finished is not built again"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -2), (signal.SIGTERM, 1)])
def test_an_interrupted_run_ends_its_workers_and_goes_on_where_it_stopped(
    tmp_path, start, number, code
):
    process = start("local", "slow")
    wait_for(lambda: begun(tmp_path) >= {"cell1", "cell2"})
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (code, 1), said
    assert "KeyboardInterrupt" in said or "ended by SIGTERM" in said
    assert not running_processes(tmp_path)
    assert read_statuses(tmp_path / "store")[0].state == "interrupted"
    report = run_graph(local(), slow(tmp_path, 0.0), Store(tmp_path / "store"), Progress())
    assert report.built == 4, "shared and cell0 were finished before"


def test_two_runners_on_one_store_build_every_step_once(tmp_path, start):
    runners = [start("local", "fan") for _ in range(2)]
    for runner in runners:
        _, said = runner.communicate(timeout=120)
        assert runner.returncode == 0, said
    ended = [one["step"] for one in events(tmp_path / "trace") if one["what"] == "ended"]
    assert sorted(ended) == ["cell0", "cell1", "cell2", "cell3", "end", "shared"]


def test_a_store_on_a_read_only_disk_is_refused_in_words_unless_all_is_there(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    refused = "cannot be written, and there are steps to build"
    with read_only(store), pytest.raises(InputError, match=refused):
        run_graph(local(), fan(2, 0.0), Store(store), Progress())
    run_graph(local(), fan(2, 0.0), Store(store), Progress())
    with read_only(store):
        assert run_graph(local(), fan(2, 0.0), Store(store), Progress()).built == 0


def test_a_disk_that_becomes_read_only_fails_the_steps_that_it_hits(tmp_path):
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
    wait_for(lambda: any(one["step"] == "second" for one in events(tmp_path / "trace")))
    with read_only(store):
        runner.join(60)
    [error] = raised
    assert isinstance(error, StepsFailed)
    assert "thing second" in str(error)
    assert "Read-only file system" in str(error) or "cannot be written" in str(error)


def test_only_its_user_may_enter_the_folder_of_a_run(tmp_path):
    run_graph(local(), fan(2, 0.0), Store(tmp_path / "store"), Progress())
    [folder] = (tmp_path / "store" / RUNS_FOLDER).iterdir()
    assert folder.stat().st_mode & 0o077 == 0


def test_several_steps_at_once_are_shown_each_with_its_own_number(tmp_path):
    import io

    stream = io.StringIO()
    run_graph(local(), fan(2, 0.5), Store(tmp_path / "store"), Lines(stream))
    lines = stream.getvalue().splitlines()
    numbers = {}
    for line in lines:
        place, _, rest = line.partition("] ")
        name = rest.split(":")[0].removesuffix(" …")
        numbers.setdefault(name, set()).add(place)
    assert all(len(places) == 1 for places in numbers.values()), lines
    finished = [line for line in lines if "done in" in line]
    assert len(finished) == 4
    assert all(one != other for one, other in pairwise(finished))


@pytest.mark.parametrize("executor", [InProcess(), local()], ids=["in-process", "local"])
def test_a_stored_step_of_other_content_takes_up_inputs_that_nobody_seemed_to_need(
    tmp_path, executor
):
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
    # `both` is stored, so that `second` and `deep` need not be built; then `first` is another.
    report = run_graph(executor, graph, Store(tmp_path / "store"), Progress())
    assert report.built == 5
    values = [(report.artifact(one).path / "value").read_text() for one in (first, second, both)]
    assert values[2] == f"{values[0]} {values[1]}"
    [status, *_] = read_statuses(tmp_path / "store")
    assert (status.state, {one.state for one in status.steps}) == ("finished", {"done"})


def test_what_is_stored_needs_no_inputs(tmp_path):
    graph = fan(2, 0.0)
    run_graph(InProcess(), graph, Store(tmp_path / "store"), Progress())
    [folder] = (tmp_path / "store/thing").glob("shared-*")
    delete_tree(folder)
    for executor in (InProcess(), local()):
        assert run_graph(executor, graph, Store(tmp_path / "store"), Progress()).built == 0
    assert not folder.exists()
