"""The executor `ray` on a cluster of local nodes, one of which is removed while its task runs."""

import threading

import pytest

from inject.errors import InputError
from spikein.config.executor_settings import RaySettings
from spikein.executors import StepsFailed, run_graph
from spikein.executors.pools.ray_cluster import Ray
from spikein.pipeline.graph import Graph
from spikein.progress import Silent
from spikein.store.store import Store
from tests.spikein.executors.graphs import events, fan, one_fails, sleeping, value
from tests.spikein.executors.test_local import contents, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
pytest.importorskip("ray", reason="RAY IS NOT TESTED: pip install 'spikein[ray]'")


@pytest.fixture
def cluster(monkeypatch):
    """A head that builds nothing, and one node with one core."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    made.first = made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made
    made.shutdown()


def ray(cluster, **settings) -> Ray:
    return Ray(RaySettings.model_validate({"address": cluster.address, **settings}))


def test_a_cluster_builds_a_graph_and_a_failed_cell_takes_no_other_down(cluster, tmp_path):
    graph = fan(2, 0.2, tmp_path / "trace")
    report = run_graph(ray(cluster), graph, Store(tmp_path / "store"), Silent())
    assert value(report, graph.goals[0]) == 5
    assert {one["threads"] for one in events(tmp_path / "trace")} == {"1"}
    with pytest.raises(StepsFailed, match="this step never works") as raised:
        run_graph(ray(cluster), one_fails(), Store(tmp_path / "store"), Silent())
    assert "a line of the log before it fails" in raised.value.failures[0].lines
    with pytest.raises(InputError, match="asks for 64 CPUs and 0 GPUs, which no machine"):
        run_graph(
            ray(cluster, steps={"thing": {"cpus": 64}}),
            fan(1, 0.0),
            Store(tmp_path / "other"),
            Silent(),
        )


def test_a_node_removed_while_its_task_runs_loses_nothing(cluster, tmp_path):
    graph = Graph(goals=(sleeping("long", 6.0, tmp_path / "trace"),))
    said: list[str] = []
    result: list[object] = []

    class Heard(Silent):
        def notice(self, text: str) -> None:
            said.append(text)

    def run() -> None:
        try:
            result.append(run_graph(ray(cluster), graph, Store(tmp_path / "store"), Heard()))
        except BaseException as error:
            result.append(error)

    runner = threading.Thread(target=run)
    runner.start()
    wait_for(lambda: events(tmp_path / "trace"), 120)
    cluster.add_node(num_cpus=1)
    cluster.remove_node(cluster.first, allow_graceful=False)
    runner.join(150)
    assert not runner.is_alive()
    [report] = result
    assert not isinstance(report, BaseException), report
    assert report.built == 1
    assert any("thing long: the task was lost" in text for text in said), said
    found = [(one["what"], one["process"]) for one in events(tmp_path / "trace")]
    assert [what for what, _ in found] == ["began", "began", "ended"]
    assert found[0][1] != found[1][1]
    assert len(contents(tmp_path / "store")) == 1


def test_no_cluster_at_an_address_is_said_in_words(tmp_path):
    with pytest.raises(InputError, match="no Ray cluster answers"):
        run_graph(
            Ray(RaySettings(address="127.0.0.1:1")),
            fan(1, 0.0),
            Store(tmp_path / "store"),
            Silent(),
        )
