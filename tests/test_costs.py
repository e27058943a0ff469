"""The quick tests: skipped tests are listed, and listed tests exist."""

from pathlib import Path

import pytest

from tests.costs import LIST, MARK, Cost, list_of, listed
from tests.processes import python
from tests.test_documents import REPOSITORY, functions


def test_cost_list_names_existing_tests():
    named = listed(LIST.read_text(encoding="utf-8"))
    assert named
    absent = [
        name
        for name in named
        if not (REPOSITORY / name.split("::")[0]).is_file()
        or name.split("::")[-1] not in functions(REPOSITORY / name.split("::")[0])
    ]
    assert absent == [], f"take these lines out of {LIST.name}, or run: make durations"


COSTS = {
    "tests/a.py::test_fast[1]": Cost(seconds=0.01),
    "tests/a.py::test_fast[2]": Cost(seconds=0.9),
    "tests/a.py::test_starts": Cost(seconds=0.01, process=True),
    "tests/a.py::test_slow": Cost(seconds=80.0, slow=True),
    "tests/a.py::test_quick": Cost(seconds=0.01),
    "tests/a.py::test_shares": Cost(seconds=0.01, shared=3.0),
}


def test_expensive_tests_and_tests_with_processes_are_listed():
    assert listed(list_of(COSTS)) == {
        "tests/a.py::test_fast": "0.90 s",
        "tests/a.py::test_starts": "process",
        "tests/a.py::test_shares": "3.00 s",
    }


@pytest.mark.parametrize("processes", [0, 2])
def test_recorded_run_measures_seconds_and_processes(tmp_path: Path, processes: int):
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys, time\n"
        "import pytest\n"
        "@pytest.fixture(scope='module')\n"
        "def dear(): time.sleep(0.6)\n"
        "def test_quick(): pass\n"
        "def test_first(dear): pass\n"
        "def test_second(dear): pass\n"
        "def test_long(): time.sleep(0.4)\n"
        "def test_process(): subprocess.run([sys.executable, '-c', ''], check=True)\n"
    )
    (tmp_path / "recorder.py").write_text(
        "from pathlib import Path\n"
        "import tests.costs as costs\n"
        "costs.LIST = Path('list').resolve()\n"
        "pytest_plugins = ['tests.costs']\n"
    )
    options = ("-q", "-p", "no:cacheprovider", "-p", "recorder", "-n", processes)
    done = python("-m", "pytest", *options, "test_it.py", folder=tmp_path, path=(tmp_path,))
    assert done.returncode == 0, done.stdout
    named = listed((tmp_path / "list").read_text())
    listed_tests = ("test_long", "test_process", "test_first", "test_second")
    assert set(named) == {f"test_it.py::{name}" for name in listed_tests}


def test_the_listed_tests_carry_the_marker(request):
    named = listed(LIST.read_text(encoding="utf-8"))
    for item in request.session.items:
        name = item.nodeid.split("[", 1)[0]
        assert (item.get_closest_marker(MARK) is not None) == (name in named), name
