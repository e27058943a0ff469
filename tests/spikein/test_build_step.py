"""`python -m spikein.build_step`: one step of a run's graph by hand, as a worker builds it."""

from collections import Counter
from pathlib import Path

import pytest

from inject.errors import InputError
from spikein.build_step import find_step, main, open_graph
from spikein.executors.graph_file import write_graph
from spikein.pipeline.graph import Graph
from spikein.store.store import Store
from tests.processes import python
from tests.spikein.executors.graphs import fan, one_fails


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def graph_file(folder: Path, graph: Graph) -> str:
    return write_graph(graph, Store(folder / "store"), folder).path


def labels(store: Path) -> list[str]:
    return sorted(path.name.rpartition("-")[0] for path in store.glob("thing/[!.]*"))


def test_a_step_is_built_after_its_inputs_and_its_folder_is_printed(tmp_path, capsys):
    path = graph_file(tmp_path, fan(1, 0.0))
    assert main([path, "thing cell0"]) == 2
    log = capsys.readouterr().err
    assert "the input shared (thing shared) is not in the store" in log
    shared = find_step(open_graph(Path(path)), "thing shared")
    assert main([path, shared.digest[:12]]) == 0
    assert main([path, "thing cell0"]) == 0
    out, log = capsys.readouterr()
    [_, folder] = out.splitlines()
    assert (Path(folder) / "value").read_text() == "2"
    assert "thing cell0 …" in log
    assert labels(tmp_path / "store") == ["cell0", "shared"]
    assert main([path, "thing cell0"]) == 0
    assert capsys.readouterr().out.strip() == folder


def test_build_step_runs_from_any_folder_and_prints_its_usage(tmp_path):
    path = graph_file(tmp_path, fan(1, 0.0))

    done = python("-m", "spikein.build_step", path, "thing shared", folder=Path("/"))
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == tmp_path / "store/thing"
    helped = python("-m", "spikein.build_step", "--help")
    assert "graph.json" in helped.stdout
    assert "example:" in helped.stdout


def test_an_error_of_a_step_is_printed_with_its_traceback(tmp_path, capsys):
    path = graph_file(tmp_path, one_fails())
    main([path, "thing shared"])
    assert main([path, "thing bad"]) == 1
    log = capsys.readouterr().err
    assert "ValueError: this step never works" in log
    assert "step_functions.py" in log
    assert "This happened in the step thing bad" in log


def test_unknown_and_ambiguous_step_names_and_other_files_are_refused(tmp_path):
    graph = open_graph(Path(graph_file(tmp_path, fan(20, 0.0))))
    with pytest.raises(InputError, match=r"no step 'thing cel0'.*Did you mean 'thing cell0'"):
        find_step(graph, "thing cel0")
    letter = Counter(digest[0] for digest in graph.steps).most_common(1)[0][0]
    with pytest.raises(InputError, match=f"'{letter}' names [0-9]+ steps"):
        find_step(graph, letter)
    for content in ("{", "[]", "{}", '{"steps": {"a": {}}}'):
        (tmp_path / "other.json").write_text(content)
        with pytest.raises(InputError, match=r"other\.json: is not a graph of a run"):
            open_graph(tmp_path / "other.json")
    with pytest.raises(InputError, match="is not a graph of a run"):
        open_graph(tmp_path / "absent.json")
