"""The executor `ray` on a cluster of local nodes, one of which is killed while its task runs."""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from inject.errors import InputError
from inject.step import Step
from spikein.config.executor_settings import RaySettings
from spikein.executors import StepsFailed, run_graph
from spikein.executors.pools.ray_cluster import Ray, _session_folder
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Store
from tests.spikein.executors.graphs import (
    events,
    fan,
    one_fails,
    sleeping,
    value,
    wait_for,
)
from tests.spikein.step_functions import step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
pytest.importorskip("ray", reason="RAY IS NOT TESTED: pip install 'spikein[ray]'")


@pytest.fixture(scope="module")
def cluster():
    """A head that builds nothing, and two nodes with one core each, all on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False, "dashboard_agent_listen_port": 0}
        made = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(2):
                made.add_node(num_cpus=1)
            made.wait_for_nodes(timeout=120)
            yield made
        finally:
            made.shutdown()


def ray(cluster, **settings) -> Ray:
    return Ray(RaySettings.model_validate({"address": cluster.address, **settings}))


def test_a_cluster_builds_a_graph_and_a_failed_cell_does_not_stop_others(cluster, tmp_path):
    graph = fan(2, 0.2, tmp_path / "trace")
    report = run_graph(ray(cluster), graph, Store(tmp_path / "store"), Progress())
    assert value(report, graph.goals[0]) == 5
    assert {event["threads"] for event in events(tmp_path / "trace")} == {"1"}
    with pytest.raises(StepsFailed, match="this step never works") as raised:
        run_graph(ray(cluster), one_fails(), Store(tmp_path / "store"), Progress())
    assert "a line of the log before it fails" in raised.value.failures[0].lines
    assert raised.value.not_begun == ("thing after",)
    names = {path.name.rpartition("-")[0] for path in (tmp_path / "store/thing").glob("[!.]*")}
    assert names >= {"shared", "good1", "good2"}


def test_oversized_requests_are_refused_and_the_cluster_stays_usable(cluster, tmp_path):
    for _ in range(2):
        with pytest.raises(InputError, match="requests 64 CPUs and 0 GPUs, which no machine"):
            run_graph(
                ray(cluster, steps={"thing": {"cpus": 64}}),
                fan(1, 0.0),
                Store(tmp_path / "store"),
                Progress(),
            )
    graph = Graph(goals=(sleeping("after", 0.0),))
    assert run_graph(ray(cluster), graph, Store(tmp_path / "store"), Progress()).built == 1


def located(label: str, trace: Path, folder: Path, *, seconds: float) -> Step:
    """A step that sleeps on its first attempt, and writes down its node."""
    execution = {"trace": str(trace), "nodes": str(folder), "seconds": seconds}
    return step(label, "sleep_on_first_node", execution=execution)


def test_a_node_removed_while_its_task_runs_loses_nothing(cluster, tmp_path):
    trace, places = tmp_path / "trace", tmp_path / "places"
    long = located("long", trace, places, seconds=300.0)
    others = [sleeping(f"short{number}", 0.2, trace) for number in range(3)]
    graph = Graph(goals=(long, *others, sleeping("end", 0.0, trace, long=long)))
    notices: list[str] = []
    result: list[object] = []

    class NoticeList(Progress):
        def notice(self, text: str) -> None:
            notices.append(text)

    def run() -> None:
        try:
            result.append(run_graph(ray(cluster), graph, Store(tmp_path / "store"), NoticeList()))
        except BaseException as error:
            result.append(error)

    runner = threading.Thread(target=run)
    runner.start()
    wait_for(lambda: [event for event in events(trace) if event["step"] == "long"])
    first = (places / "0").read_text()
    [victim] = [node for node in cluster.worker_nodes if node.node_id == first]
    cluster.remove_node(victim, allow_graceful=False)
    runner.join(180)
    assert not runner.is_alive()
    [report] = result
    assert not isinstance(report, BaseException), report
    assert report.built == 5
    assert any("thing long: the task was lost" in text for text in notices), notices
    assert (places / "1").read_text() != first, "it resumed on the other node"
    long_events = [event for event in events(trace) if event["step"] == "long"]
    assert [event["what"] for event in long_events] == ["began", "began", "ended"]
    process = Path(f"/proc/{long_events[0]['process']}")
    wait_for(lambda: not process.exists(), 60)


def test_an_address_without_a_cluster_is_refused_at_once(tmp_path):
    began = time.monotonic()
    nowhere, store = Ray(RaySettings(address="127.0.0.1:1")), Store(tmp_path / "store")
    with pytest.raises(InputError, match="no Ray cluster answers"):
        run_graph(nowhere, fan(1, 0.0), store, Progress())
    assert time.monotonic() - began < 30, "Ray itself tries for minutes"


DRIVER = """
import sys
from pathlib import Path
from inject.errors import SpikeinError
from spikein.executors import run_graph
from spikein.executors.pools import ray_cluster
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Store
from tests.spikein.executors.graphs import sleeping

ray_cluster._HEAD_SECONDS = 4.0
root = Path(sys.argv[1])
try:
    graph = Graph(goals=(sleeping("long", 300.0, root / "trace"),))
    run_graph(ray_cluster.Ray(), graph, Store(root / "store"), Progress())
except SpikeinError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="kills a process by its name in /proc")
def test_a_dead_head_ends_the_run_with_our_message_before_ray_aborts_it(tmp_path):
    import psutil

    variables = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        text=True, stdout=subprocess.PIPE, env=variables,
    ) as driver:  # fmt: skip
        wait_for(lambda: events(tmp_path / "trace"))
        started = psutil.Process(driver.pid).children(recursive=True)
        [server] = [process for process in started if "gcs_server" in process.name()]
        server.kill()
        output, _ = driver.communicate(timeout=100)
    assert driver.returncode == 2
    assert re.search(r"the head of the Ray cluster \(\S+:\d+\) has not answered", output)
    assert "run the same command to resume" in output


def test_our_own_cluster_leaves_no_folder_and_removes_those_of_killed_runs(tmp_path, monkeypatch):
    import ray as library

    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as place:
        monkeypatch.setenv("RAY_TMPDIR", place)
        left = _session_folder()
        used = _session_folder()
        folders = [Path(session.lock_file).parent for session in (left, used)]
        left.release()
        (folders[0] / "session").mkdir()
        assert not library.is_initialized()
        graph = fan(1, 0.0, tmp_path / "trace")
        run_graph(Ray(), graph, Store(tmp_path / "store"), Progress())
        kept_folders = [
            path for path in Path(place).iterdir() if path.name.startswith("spikein-ray-")
        ]
        assert kept_folders == [folders[1]]
        used.release()
