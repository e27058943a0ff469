"""Executors of users: found by name or by file, and refused if they are invalid."""

import textwrap
from pathlib import Path

import pytest

from inject.errors import InputError
from inject.plugins.plugin import _source
from spikein.executors import get_executor, list_executors
from tests.command_line import invoke
from tests.inject.plugins.packages import forget, install

GROUP = "spikein.executors"
QUEUE = '''
class Queue:
    """Sends each step to a queue.

    More words.
    """

    def run(self, graph, store, progress):
        return "ran"
'''


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    forget("queue_kit")
    _source.cache_clear()


def write_plugin(folder: Path, text: str) -> str:
    (folder / "mine.py").write_text(textwrap.dedent(text))
    return str(folder / "mine.py")


def test_an_installed_executor_is_chosen_and_listed_by_its_name(site):
    install(
        site,
        "queue-kit",
        modules={"queue_kit.py": QUEUE},
        entry_points={GROUP: {"queue": "queue_kit:Queue"}},
        version="2.1",
    )
    assert get_executor("queue").run(None, None, None) == "ran"
    rows = {row.name: row for row in list_executors()[0]}
    assert rows["queue"].description == "Sends each step to a queue."
    assert rows["queue"].origin == "queue-kit 2.1"
    assert rows["in-process"].origin == "spikein"
    listing = invoke("executors", code=0)
    assert "queue-kit 2.1" in listing.output
    assert "One step after the other, in this process." in listing.output
    with pytest.raises(InputError, match=r"called 'quue'.*Did you mean") as refused:
        get_executor("quue")
    assert "in-process, local, ray, slurm, queue, or FILE.py:NAME" in str(refused.value)


def test_a_class_or_an_object_in_a_file_is_an_executor(tmp_path):
    file = write_plugin(tmp_path, QUEUE + "\nready = Queue()\n")
    assert get_executor(f"{file}:Queue").run(None, None, None) == "ran"
    assert get_executor(f"{file}:ready").run(None, None, None) == "ran"


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (QUEUE, "Queue:speed=2", "'speed=2' follows the name of an executor"),
        ("Queue = 3", "Queue", "is an object of type int, not an executor"),
        (
            "class Queue:\n def __init__(self, host): pass\n def run(self, a, b, c): pass",
            "Queue",
            "cannot be created without arguments: TypeError",
        ),
        (
            "class Queue:\n def run(self, graph): pass",
            "Queue",
            "its method run does not take graph, store and progress",
        ),
    ],
)
def test_objects_that_are_not_executors_are_refused_with_their_place(tmp_path, text, name, words):
    file = write_plugin(tmp_path, text)
    with pytest.raises(InputError) as refused:
        get_executor(f"{file}:{name}")
    assert words in str(refused.value)
    assert "mine.py" in str(refused.value)
