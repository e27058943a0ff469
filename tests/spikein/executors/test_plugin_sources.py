"""Plug-in files in steps of other processes: loaded again by name, and refused if they changed."""

import textwrap
from pathlib import Path

import pytest

from inject.errors import InputError
from inject.plugins import PluginKind, file_reference, load_file
from spikein.config.executor_settings import LocalSettings
from spikein.executors import InProcess, StepsFailed, run_graph
from spikein.executors.pools.local import Local
from spikein.pipeline.graph import Graph
from spikein.progress import Progress
from spikein.store.store import Store
from tests.spikein.executors.graphs import value
from tests.spikein.step_functions import step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PLUGIN = '''
"""A plug-in that imports a module from its folder."""

from constants import FACTOR


class Counted:
    def number(self):
        return 6 * FACTOR
'''
EXPECTED = PluginKind(noun="thing", accepts=lambda value: isinstance(value, type), allowed="any")


def write_plugin(folder: Path) -> Path:
    folder.mkdir()
    (folder / "mine.py").write_text(textwrap.dedent(PLUGIN))
    (folder / "constants.py").write_text("FACTOR = 7\n")
    return folder


def graph(name: str) -> Graph:
    reference = file_reference(name)
    assert reference is not None
    settings = {"plugin": load_file(reference, EXPECTED).digest}
    goal = step("plugin", "run_plugin", settings=settings, execution={"plugin": name})
    return Graph(goals=(goal,))


def test_a_worker_loads_a_plugin_again_from_the_folder_where_the_run_began(tmp_path, monkeypatch):
    write_plugin(tmp_path / "plugins")
    monkeypatch.chdir(tmp_path)
    made = graph("plugins/mine.py:Counted")
    report = run_graph(Local(LocalSettings(workers=1)), made, Store(tmp_path / "store"), Progress())
    assert value(report, made.goals[0]) == 42


def test_a_plugin_edited_since_the_step_was_named_is_refused_with_a_remedy(tmp_path):
    folder = write_plugin(tmp_path / "plugins")
    made = graph(f"{folder / 'mine.py'}:Counted")
    (folder / "constants.py").write_text("FACTOR = 8\n")
    edited = r"the source was edited since this run was named\. Run the same command again"
    with pytest.raises(StepsFailed, match=edited):
        run_graph(Local(LocalSettings(workers=1)), made, Store(tmp_path / "store"), Progress())
    with pytest.raises(InputError, match=edited):
        run_graph(InProcess(), made, Store(tmp_path / "store"), Progress())
    assert not list((tmp_path / "store").glob("thing/[!.]*"))
    again = graph(f"{folder / 'mine.py'}:Counted")
    report = run_graph(InProcess(), again, Store(tmp_path / "store"), Progress())
    assert value(report, again.goals[0]) == 48
