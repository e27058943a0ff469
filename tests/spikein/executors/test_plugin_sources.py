"""Plug-in files in steps of other processes: the bytes that ran here run there."""

import textwrap
from pathlib import Path

import pytest

from inject.plugins import Expected, file_reference, load_file
from spikein.config.executor_settings import LocalSettings
from spikein.executors import run_graph
from spikein.executors.pools.local import Local
from spikein.pipeline.graph import Graph
from spikein.progress import Silent
from spikein.store.store import Store
from tests.spikein.executors.graphs import step, value

PLUGIN = '''
"""A plug-in with a module of its own beside it."""

from beside import FACTOR


class Counted:
    def number(self):
        return 6 * FACTOR
'''


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_worker_runs_the_plugin_that_ran_here_though_its_file_is_gone(tmp_path: Path):
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "mine.py").write_text(textwrap.dedent(PLUGIN))
    (folder / "beside.py").write_text("FACTOR = 7\n")
    reference = file_reference(f"{folder / 'mine.py'}:Counted")
    assert reference is not None
    expected = Expected(noun="thing", accepts=lambda value: isinstance(value, type), allowed="any")
    counted = load_file(reference, expected).value()

    def build(context) -> None:
        (context.out / "value").write_text(str(counted.number()))

    # Edited and deleted after it was loaded: a worker that read the files would fail, or differ.
    (folder / "mine.py").unlink()
    (folder / "beside.py").write_text("FACTOR = 8\n")
    graph = Graph(goals=(step("plugin", build),))
    local = Local(LocalSettings(workers=1))
    report = run_graph(local, graph, Store(tmp_path / "store"), Silent())
    assert value(report, graph.goals[0]) == 42
